// Training kernels on 8 lanes: AVX2 and FMA.
#define EBNET_DENSE_LANES 8
#include "train/sample_gradients.h"

namespace ebnet {

const TrainKernels kTrainAvx2 = {kLanes, sample_gradients_of_block};

}  // namespace ebnet
