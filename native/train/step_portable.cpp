// A training step's operations on 4 lanes, whatever the CPU.
#define EBNET_DENSE_LANES 4
#include "train/adam_kernel.h"
#include "train/max_pool_kernel.h"
#include "train/real_kernels.h"

namespace ebnet {

const StepKernels kStepPortable = {
    convolve_tile, activate_tile, sum_gradients_of_tile, gradients_of_tile, max_pool_plane, adam_part,
};

}  // namespace ebnet
