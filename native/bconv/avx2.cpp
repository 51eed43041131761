// Binary convolution on 32 lanes: AVX2 and F16C.
#include "base/vectors/avx2.h"
// After the vectors.
#include "bconv/pair_lut.h"

namespace ebnet::pair_lut {

void run_avx2(const ConvTask& task, int most_blocks) { run(task, most_blocks); }

}  // namespace ebnet::pair_lut
