// Training kernels on 8 lanes: AVX2 and FMA.
#define EBNET_DENSE_LANES 8
#include "train/convolution.h"
#include "train/sample_gradients.h"

namespace ebnet {

const TrainKernels kTrainAvx2 = {kLanes, sample_gradients_of_block, forward, input_gradient};

}  // namespace ebnet
