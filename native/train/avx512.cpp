// Training kernels on 16 lanes: AVX-512F.
#define EBNET_DENSE_LANES 16
#include "train/sample_gradients.h"

namespace ebnet {

const TrainKernels kTrainAvx512 = {kLanes, sample_gradients_of_block};

}  // namespace ebnet
