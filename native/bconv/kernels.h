// The kernels of this build, each defined in the file of its name. Only select.cpp, tests and benchmarks name them.
#pragma once
#include "bconv/bconv.h"

namespace ebnet {

extern const Kernel kReferenceKernel;
extern const Kernel kPortableKernel;
#ifdef EBNET_X86_64
extern const Kernel kAvx2OneBlock, kAvx2TwoBlocks, kAvx2FourBlocks;
extern const Kernel kAvx512Kernel;
extern const Kernel kAvx512CarrySaveKernel;
extern const Kernel kAmxKernel;
#elif defined(EBNET_ARM64)
extern const Kernel kNeonOneBlock, kNeonTwoBlocks, kNeonFourBlocks;
#elif defined(EBNET_SIMD128)
extern const Kernel kSimd128OneBlock, kSimd128TwoBlocks, kSimd128FourBlocks;
#endif

}  // namespace ebnet
