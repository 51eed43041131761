// Binary convolution on 16 lanes: WebAssembly's 128-bit vectors.
#include "base/vectors/simd128.h"
// After the vectors.
#include "bconv/pair_lut.h"

namespace ebnet::pair_lut {

void run_simd128(const ConvTask& task, int most_blocks) { run(task, most_blocks); }

}  // namespace ebnet::pair_lut
