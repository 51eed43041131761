// Real layers on whatever the compiler makes of 4 lanes: SSE2, NEON.
#define EBNET_DENSE_LANES 4
#include "train/max_pool_kernel.h"
#include "train/real_kernels.h"

namespace ebnet {

const RealKernels kRealPortable = {convolve_tile, activate_tile, sum_gradients_of_tile, gradients_of_tile,
max_pool_plane};

}  // namespace ebnet
