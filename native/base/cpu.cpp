#include "base/cpu.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#ifdef EBNET_X86_64
#include <cpuid.h>

#include "base/amx_cpu.h"
#elif defined(EBNET_ARM64) && defined(__linux__)
#include <sys/auxv.h>
#include <asm/hwcap.h>
#endif

namespace ebnet {
namespace {

struct IsaEntry {
  Isa isa;
  const char* name;
};

// From worst to best.
constexpr IsaEntry kIsas[] = {
    {Isa::reference, "reference"}, {Isa::portable, "portable"}, {Isa::simd128, "simd128"}, {Isa::neon, "neon"},
    {Isa::avx2, "avx2"},           {Isa::avx512, "avx512"},     {Isa::amx, "amx"},
};

#ifdef EBNET_X86_64
bool ask_for_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// Whether this CPU converts halves by itself. Not every compiler's __builtin_cpu_supports knows it. Asked once: in a virtual
// machine the question takes microseconds, more than a narrow layer's whole work.
bool has_f16c() {
  static const bool known = ask_for_f16c();
  return known;
}
#endif

#ifdef EBNET_ARM64
bool has_dot_product() {
#ifdef __linux__
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__APPLE__)
  return true;  // since the A13 and the M1
#else
  return false;
#endif
}
#endif

const char* named_isa() {
  const char* wanted = std::getenv("EBNET_ISA");
  return wanted != nullptr && *wanted != '\0' ? wanted : nullptr;
}

}  // namespace

bool cpu_supports(Isa isa) {
#ifdef EBNET_EMULATE_AVX512
  if (isa >= Isa::avx512) return cpu_supports(Isa::avx2);  // its kernels are compiled to that
#endif
  switch (isa) {
    case Isa::reference:
    case Isa::portable:
      return true;
#ifdef EBNET_X86_64
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && has_f16c();
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vpopcntdq");
    case Isa::amx:
      return cpu_supports(Isa::avx512) && amx::permitted();
#elif defined(EBNET_ARM64)
    case Isa::neon:  // a part of the architecture
      return true;
#elif defined(EBNET_SIMD128)
    case Isa::simd128:  // a browser without it refuses the module as a whole
      return true;
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

Isa requested_isa() {
  std::string usable;
  Isa best = Isa::portable;
  const char* wanted = named_isa();
  for (const IsaEntry& entry : kIsas) {
    if (!cpu_supports(entry.isa)) continue;
    if (wanted != nullptr && entry.name == std::string(wanted)) return entry.isa;
    usable += (usable.empty() ? "" : ", ") + std::string(entry.name);
    best = entry.isa;
  }
  if (wanted != nullptr) {
    throw std::invalid_argument("EBNET_ISA=" + std::string(wanted) + " cannot run here; this CPU runs: " + usable);
  }
  return best;
}

bool cpu_supports(DenseLevel level) {
#ifdef EBNET_X86_64
  if (level == DenseLevel::avx512) return __builtin_cpu_supports("avx512f") && has_f16c();
  if (level == DenseLevel::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#elif defined(EBNET_ARM64)
  if (level == DenseLevel::neon) return true;
#elif defined(EBNET_SIMD128)
  if (level == DenseLevel::simd128) return true;
#endif
  return level == DenseLevel::scalar;
}

DenseLevel dense_level(Isa isa) {
  if (isa >= Isa::avx512 && cpu_supports(DenseLevel::avx512)) return DenseLevel::avx512;
  if (isa >= Isa::avx2 && cpu_supports(DenseLevel::avx2)) return DenseLevel::avx2;
  if (isa == Isa::neon) return DenseLevel::neon;
  return isa == Isa::simd128 ? DenseLevel::simd128 : DenseLevel::scalar;
}

DenseLevel requested_dense_level() {
  const Isa isa = requested_isa();
  const bool widest = named_isa() == nullptr && cpu_supports(DenseLevel::avx512);
  return widest ? DenseLevel::avx512 : dense_level(isa);
}

const char* dense_level_name(DenseLevel level) {
  static constexpr const char* kNames[] = {"scalar", "simd128", "neon", "avx2", "avx512"};
  return kNames[static_cast<int>(level)];
}

bool cpu_supports(Int8Level level) {
#ifdef EBNET_X86_64
  if (level == Int8Level::vnni) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  }
  if (level == Int8Level::avx2) return cpu_supports(DenseLevel::avx2);
#elif defined(EBNET_ARM64)
  if (level == Int8Level::dotprod) return has_dot_product();
  if (level == Int8Level::neon) return true;
#elif defined(EBNET_SIMD128)
  if (level == Int8Level::simd128) return true;
#endif
  return level == Int8Level::scalar;
}

Int8Level int8_level(Isa isa) {
  if (isa >= Isa::avx512 && cpu_supports(Int8Level::vnni)) return Int8Level::vnni;
  if (isa >= Isa::avx2 && cpu_supports(Int8Level::avx2)) return Int8Level::avx2;
  if (isa == Isa::neon) return cpu_supports(Int8Level::dotprod) ? Int8Level::dotprod : Int8Level::neon;
  return isa == Isa::simd128 ? Int8Level::simd128 : Int8Level::scalar;
}

Int8Level requested_int8_level() {
  const Isa isa = requested_isa();
  const bool widest = named_isa() == nullptr && cpu_supports(Int8Level::vnni);
  return widest ? Int8Level::vnni : int8_level(isa);
}

const char* int8_level_name(Int8Level level) {
  static constexpr const char* kNames[] = {"scalar", "simd128", "neon", "dotprod", "avx2", "vnni"};
  return kNames[static_cast<int>(level)];
}

std::string cpu_name() {
  std::string name;
#ifdef EBNET_X86_64
  unsigned words[4] = {};
  for (unsigned leaf = 0x80000002u; leaf <= 0x80000004u; ++leaf) {
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) break;
    char text[sizeof words + 1] = {};
    std::memcpy(text, words, sizeof words);
    name += text;
  }
  if (__get_cpuid(1, &words[0], &words[1], &words[2], &words[3]) != 0) name += " " + std::to_string(words[0]);
#endif
  for (char& letter : name) {
    if (letter < ' ' || letter > '~') letter = ' ';
  }
  return name;
}

}  // namespace ebnet
