// A layer of made-up data: what kernels are timed and proved on.
#pragma once
#include "base/aligned.h"
#include "base/shape.h"

namespace ebnet {

struct MadeUpLayer {
  AlignedBytes canonical;  // of one expert
  AlignedBytes input;      // a bit plane, in 64-bit words
};

// The same for a shape every time; bits that are not used are 0 as everywhere.
MadeUpLayer made_up_layer(const ConvShape& shape);

}  // namespace ebnet
