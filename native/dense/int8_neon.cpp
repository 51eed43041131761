// int8 layers on NEON as every 64-bit ARM CPU has it.
#define EBNET_INT8_KERNELS kInt8Neon
#include "dense/int8_neon.h"
