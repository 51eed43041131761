// int8 layers on NEON as every 64-bit ARM CPU has it.
#include "dense/int8_neon.h"

namespace ebnet {

const Int8Kernels kInt8Neon = {conv, to_bytes, max_pool};

}  // namespace ebnet
