// AVX-512 intrinsics: the compiler's, or in the emulated test build SIMDe's plain C versions of the same names.
#pragma once
#ifdef EBNET_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#else
#include <immintrin.h>
#endif
