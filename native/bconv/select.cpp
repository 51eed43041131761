// Which kernel runs: the CPU's features, EBNET_ISA, and each kernel's own word on the shape. The only place that decides.
#include <cstdlib>
#include <stdexcept>

#include "bconv/kernels.h"

namespace ebnet {
namespace {

struct IsaEntry {
  Isa isa;
  const char* name;
  const Kernel* kernel;
};

// From worst to best.
constexpr IsaEntry kIsas[] = {
    {Isa::reference, "reference", &kReferenceKernel},
    {Isa::portable, "portable", &kPortableKernel},
#ifdef EBNET_X86_64
    {Isa::avx2, "avx2", &kAvx2Kernel},
    {Isa::avx512, "avx512", &kAvx512Kernel},
#endif
};

const IsaEntry* find(Isa isa) {
  for (const IsaEntry& entry : kIsas) {
    if (entry.isa == isa) return &entry;
  }
  return nullptr;
}

}  // namespace

const std::vector<const Kernel*>& all_kernels() {
  static const std::vector<const Kernel*> kernels = [] {
    std::vector<const Kernel*> list;
    for (const IsaEntry& entry : kIsas) list.push_back(entry.kernel);
    return list;
  }();
  return kernels;
}

bool cpu_supports(Isa isa) {
  switch (isa) {
    case Isa::reference:
    case Isa::portable:
      return true;
#ifdef EBNET_X86_64
    case Isa::avx2:
      return __builtin_cpu_supports("avx2");
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vpopcntdq");
#endif
    default:
      return false;
  }
}

const char* isa_name(Isa isa) {
  const IsaEntry* entry = find(isa);
  return entry != nullptr ? entry->name : "unknown";
}

const Kernel& select(const ConvShape& shape, Isa isa) {
  const IsaEntry* entry = find(isa);
  return entry != nullptr && entry->kernel->supports(shape) ? *entry->kernel : kPortableKernel;
}

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
