// Real-valued kernels on 4 lanes: NEON.
#define EBNET_DENSE_LANES 4
#include "dense/vector.h"

namespace ebnet {

const DenseKernels kDenseNeon = {conv, widen, max_pool, average_pool, global_average_pool, row_means,
                                     linear<float>, linear<Half>};

}  // namespace ebnet
