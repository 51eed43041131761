// A kernel proves itself before it is used: on made-up data its numbers are the portable kernel's, bit for bit. So a CPU
// that nobody tested on, or a compiler's mistake, cannot give wrong answers silently.
#pragma once
#include "bconv/bconv.h"

namespace ebnet {

// Dot products, stream, bits and row sums of a few rows of the layer, at its full width and in two pieces. Some tenths
// of a millisecond.
bool agrees_with_portable(const Kernel& kernel, const ConvShape& shape);

}  // namespace ebnet
