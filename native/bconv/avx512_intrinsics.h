// AVX-512 intrinsics: the compiler's, or in the emulated test build SIMDe's plain C versions of the same names.
#pragma once
#ifdef EBNET_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

// The one intrinsic SIMDe 0.7.4 lacks.
inline simde__m512 emulated_cvtepi32_ps(simde__m512i integers) {
  const simde__m512i_private from = simde__m512i_to_private(integers);
  simde__m512_private to;
  for (int lane = 0; lane < 16; ++lane) to.f32[lane] = static_cast<float>(from.i32[lane]);
  return simde__m512_from_private(to);
}
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#else
#include <immintrin.h>
#endif
