// Real-valued kernels on 8 lanes: AVX2 and FMA.
#define EBNET_DENSE_LANES 8
#include "dense/vector.h"

namespace ebnet {

const DenseKernels kDenseAvx2 = {conv, widen, max_pool, average_pool, global_average_pool, row_means,
                                     linear<float>, linear<Half>};

}  // namespace ebnet
