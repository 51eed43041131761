// Binary convolution on 16 lanes: NEON.
#include "base/vectors/neon.h"
// After the vectors.
#include "bconv/pair_lut.h"

namespace ebnet::pair_lut {

void run_neon(const ConvTask& task, int most_blocks) { run(task, most_blocks); }

}  // namespace ebnet::pair_lut
