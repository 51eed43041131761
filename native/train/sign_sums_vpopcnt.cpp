// Sums of signs on 16 lanes with AVX-512's instruction for counting bits, which not every CPU with AVX-512 has.
#define EBNET_DENSE_LANES 16
#include "base/cpu.h"
#include "train/sign_tiles.h"

namespace ebnet {

void sign_sums_vpopcnt(int rows, bool two, const SignTask& t) { run_sign_sums(rows, two, t); }

}  // namespace ebnet
