// int8 layers on NEON with the dot product of ARMv8.2: four products to a lane in one instruction.
#include "dense/int8_neon.h"

namespace ebnet {

const Int8Kernels kInt8Dotprod = {conv, to_bytes, max_pool};

}  // namespace ebnet
