// Which kernels an instruction set has for a shape, by each kernel's own word on it.
#include "bconv/kernels.h"

namespace ebnet {

const std::vector<const Kernel*>& all_kernels() {
  static const std::vector<const Kernel*> kernels = {
      &kReferenceKernel,
      &kPortableKernel,
#ifdef EBNET_X86_64
      &kAvx2OneBlock,
      &kAvx2TwoBlocks,
      &kAvx2FourBlocks,
      &kAvx512Kernel,
      &kAvx512CarrySaveKernel,
      &kAmxKernel,
#elif defined(EBNET_ARM64)
      &kNeonOneBlock,
      &kNeonTwoBlocks,
      &kNeonFourBlocks,
#elif defined(EBNET_SIMD128)
      &kSimd128OneBlock,
      &kSimd128TwoBlocks,
      &kSimd128FourBlocks,
#endif
  };
  return kernels;
}

std::vector<const Kernel*> kernels_for(const ConvShape& shape, Isa isa, const std::vector<const Kernel*>& kernels) {
  std::vector<const Kernel*> found;
  // A CPU with AMX has AVX-512, which may be faster for layers that fill few tiles.
  for (int least = static_cast<int>(isa == Isa::amx ? Isa::avx512 : isa); found.empty(); --least) {
    for (const Kernel* kernel : kernels) {
      const bool of_set = kernel->isa >= static_cast<Isa>(least) && kernel->isa <= isa;
      if (of_set && kernel->supports(shape)) found.push_back(kernel);
    }
  }
  return found;
}

const Kernel& select(const ConvShape& shape, Isa isa) { return *kernels_for(shape, isa).back(); }

}  // namespace ebnet
