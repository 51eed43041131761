// Training kernels on 16 lanes: AVX-512F.
#define EBNET_DENSE_LANES 16
#include "train/convolution.h"
#include "train/sample_gradients.h"

namespace ebnet {

const TrainKernels kTrainAvx512 = {kLanes, sample_gradients_of_block, forward, input_gradient};

}  // namespace ebnet
