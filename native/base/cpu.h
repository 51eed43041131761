// What this CPU can run, and what of it is wanted: the instruction sets of the binary kernels, the levels of the
// real-valued ones, EBNET_ISA.
#pragma once
#include <string>

#if defined(__x86_64__) || defined(_M_X64)
#define EBNET_X86_64 1
#elif defined(__aarch64__)
#define EBNET_ARM64 1
#elif defined(__wasm_simd128__)
#define EBNET_SIMD128 1
#endif

namespace ebnet {

enum class Isa { reference, portable, simd128, neon, avx2, avx512, amx };  // from worst to best

bool cpu_supports(Isa isa);
const char* isa_name(Isa isa);
// What EBNET_ISA names, or the best this CPU can run. Throws std::invalid_argument where EBNET_ISA names nothing we
// have or something this CPU cannot run; the message says which names work here.
Isa requested_isa();

// How wide the real-valued kernels' vectors are.
enum class DenseLevel { scalar, simd128, neon, avx2, avx512 };
// The level that goes with a binary kernel's instruction set, or the best below it this CPU runs.
DenseLevel dense_level(Isa isa);
// The widest this CPU has, unless EBNET_ISA names a set: only the binary kernels want AVX-512 that counts bits, which not
// every CPU with AVX-512 has.
DenseLevel requested_dense_level();
bool cpu_supports(DenseLevel level);
const char* dense_level_name(DenseLevel level);

// One table of kernels for each level; null for those that another machine's build has.
template <typename Kernels>
struct PerLevel {
  const Kernels *scalar, *avx2, *avx512, *neon = nullptr, *simd128 = nullptr;

  const Kernels& at(DenseLevel level) const {
    const Kernels* found[] = {scalar, simd128, neon, avx2, avx512};
    const Kernels* kernels = found[static_cast<int>(level)];
    return kernels != nullptr ? *kernels : *scalar;
  }
};
#define EBNET_ON_X86_64(kernels) nullptr
#define EBNET_ON_ARM64(kernels) nullptr
#define EBNET_ON_SIMD128(kernels) nullptr
#if defined(EBNET_X86_64)
#undef EBNET_ON_X86_64
#define EBNET_ON_X86_64(kernels) &(kernels)
#elif defined(EBNET_ARM64)
#undef EBNET_ON_ARM64
#define EBNET_ON_ARM64(kernels) &(kernels)
#elif defined(EBNET_SIMD128)
#undef EBNET_ON_SIMD128
#define EBNET_ON_SIMD128(kernels) &(kernels)
#endif

// How the int8 layers multiply bytes.
enum class Int8Level { scalar, simd128, neon, dotprod, avx2, vnni };

// The levels of this build.
#if defined(EBNET_X86_64)
inline constexpr DenseLevel kDenseLevels[] = {DenseLevel::scalar, DenseLevel::avx2, DenseLevel::avx512};
inline constexpr Int8Level kInt8Levels[] = {Int8Level::scalar, Int8Level::avx2, Int8Level::vnni};
#elif defined(EBNET_ARM64)
inline constexpr DenseLevel kDenseLevels[] = {DenseLevel::scalar, DenseLevel::neon};
inline constexpr Int8Level kInt8Levels[] = {Int8Level::scalar, Int8Level::neon, Int8Level::dotprod};
#elif defined(EBNET_SIMD128)
inline constexpr DenseLevel kDenseLevels[] = {DenseLevel::scalar, DenseLevel::simd128};
inline constexpr Int8Level kInt8Levels[] = {Int8Level::scalar, Int8Level::simd128};
#else
inline constexpr DenseLevel kDenseLevels[] = {DenseLevel::scalar};
inline constexpr Int8Level kInt8Levels[] = {Int8Level::scalar};
#endif

Int8Level int8_level(Isa isa);
Int8Level requested_int8_level();  // as requested_dense_level
bool cpu_supports(Int8Level level);
const char* int8_level_name(Int8Level level);

// The processor's own name and signature in printable letters: what is fastest depends on it. Empty where it tells none.
std::string cpu_name();

}  // namespace ebnet
