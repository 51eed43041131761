// Training kernels on 4 lanes, whatever the CPU.
#define EBNET_DENSE_LANES 4
#include "train/convolution.h"
#include "train/sample_gradients.h"

namespace ebnet {

const TrainKernels kTrainPortable = {kLanes, sample_gradients_of_block, forward, input_gradient};

}  // namespace ebnet
