// A training step's operations on 16 lanes: AVX-512F.
#define EBNET_DENSE_LANES 16
#include "train/adam_kernel.h"
#include "train/max_pool_kernel.h"
#include "train/real_kernels.h"

namespace ebnet {

const StepKernels kStepAvx512 = {
    convolve_tile, activate_tile, sum_gradients_of_tile, gradients_of_tile, max_pool_plane, adam_part,
};

}  // namespace ebnet
