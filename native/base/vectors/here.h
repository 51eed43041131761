// 16 lanes with the instructions that every CPU of this architecture has; EBNET_VECTORS_HERE says whether there are any.
#pragma once
#include "base/cpu.h"

#if defined(EBNET_X86_64)
#include "base/vectors/sse2.h"
#elif defined(EBNET_ARM64)
#include "base/vectors/neon.h"
#elif defined(EBNET_SIMD128)
#include "base/vectors/simd128.h"
#endif
#if defined(EBNET_X86_64) || defined(EBNET_ARM64) || defined(EBNET_SIMD128)
#define EBNET_VECTORS_HERE 1
#endif
