// Real-valued kernels on 4 lanes: WebAssembly's 128-bit vectors.
#define EBNET_DENSE_LANES 4
#include "dense/vector.h"

namespace ebnet {

const DenseKernels kDenseSimd128 = {conv, widen, max_pool, average_pool, global_average_pool, row_means,
                                     linear<float>, linear<Half>};

}  // namespace ebnet
