// Which kernel runs: the CPU's features, EBNET_ISA, and each kernel's own word on the shape. The only place that decides.
#include <cstdlib>
#include <stdexcept>

#include "bconv/amx_cpu.h"
#include "bconv/kernels.h"
#include "reals/f16c.h"

namespace ebnet {
namespace {

struct IsaEntry {
  Isa isa;
  const char* name;
};

// From worst to best.
constexpr IsaEntry kIsas[] = {
    {Isa::reference, "reference"}, {Isa::portable, "portable"}, {Isa::avx2, "avx2"},
    {Isa::avx512, "avx512"},       {Isa::amx, "amx"},
};

}  // namespace

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
#endif
  };
  return kernels;
}

bool cpu_supports(Isa isa) {
  switch (isa) {
    case Isa::reference:
    case Isa::portable:
      return true;
#ifdef EBNET_X86_64
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && cpu_has_f16c();
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vpopcntdq");
    case Isa::amx:
      return cpu_supports(Isa::avx512) && amx::permitted();
#endif
    default:
      return false;
  }
}

const char* isa_name(Isa isa) {
  for (const IsaEntry& entry : kIsas) {
    if (entry.isa == isa) return entry.name;
  }
  return "unknown";
}

std::vector<const Kernel*> kernels_for(const ConvShape& shape, Isa isa) {
  std::vector<const Kernel*> found;
  // A CPU with AMX has AVX-512, which may be faster for layers that fill few tiles.
  for (int least = static_cast<int>(isa == Isa::amx ? Isa::avx512 : isa); found.empty(); --least) {
    for (const Kernel* kernel : all_kernels()) {
      const bool of_set = kernel->isa >= static_cast<Isa>(least) && kernel->isa <= isa;
      if (of_set && kernel->supports(shape)) found.push_back(kernel);
    }
  }
  return found;
}

const Kernel& select(const ConvShape& shape, Isa isa) { return *kernels_for(shape, isa).back(); }

Isa requested_isa() {
  std::string usable;
  Isa best = Isa::portable;
  const char* wanted = std::getenv("EBNET_ISA");
  for (const IsaEntry& entry : kIsas) {
    if (!cpu_supports(entry.isa)) continue;
    if (wanted != nullptr && entry.name == std::string(wanted)) return entry.isa;
    usable += (usable.empty() ? "" : ", ") + std::string(entry.name);
    best = entry.isa;
  }
  if (wanted != nullptr && *wanted != '\0') {
    throw std::invalid_argument("EBNET_ISA=" + std::string(wanted) + " cannot run here; this CPU runs: " + usable);
  }
  return best;
}

}  // namespace ebnet
