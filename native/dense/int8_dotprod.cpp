// int8 layers on NEON with the dot product of ARMv8.2: four products to a lane in one instruction.
#define EBNET_INT8_KERNELS kInt8Dotprod
#include "dense/int8_neon.h"
