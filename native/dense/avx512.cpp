// Real-valued kernels on 16 lanes: AVX-512F.
#define EBNET_DENSE_LANES 16
#include "dense/vector.h"

namespace ebnet {

const DenseKernels kDenseAvx512 = {conv, widen, max_pool, average_pool, global_average_pool, row_means,
                                     linear<float>, linear<Half>};

}  // namespace ebnet
