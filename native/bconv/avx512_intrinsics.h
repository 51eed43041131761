// AVX-512 intrinsics: the compiler's, or in the emulated test build SIMDe's plain C versions of the same names.
#pragma once
#ifdef EBNET_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <cstddef>
#include <cstring>

// Those that SIMDe 0.7.4 lacks. Halves are converted by the instructions of the CPU (F16C), not by our own functions.
inline simde__m512 emulated_cvtepi32_ps(simde__m512i integers) {
  const simde__m512i_private from = simde__m512i_to_private(integers);
  simde__m512_private to;
  for (int lane = 0; lane < 16; ++lane) to.f32[lane] = static_cast<float>(from.i32[lane]);
  return simde__m512_from_private(to);
}
inline simde__m512i emulated_cvtepu16_epi32(simde__m256i shorts) {
  const simde__m256i_private from = simde__m256i_to_private(shorts);
  simde__m512i_private to;
  for (int lane = 0; lane < 16; ++lane) to.u32[lane] = from.u16[lane];
  return simde__m512i_from_private(to);
}
inline simde__m256i emulated_cvtepi32_epi16(simde__m512i integers) {
  const simde__m512i_private from = simde__m512i_to_private(integers);
  simde__m256i_private to;
  for (int lane = 0; lane < 16; ++lane) to.i16[lane] = static_cast<std::int16_t>(from.i32[lane]);
  return simde__m256i_from_private(to);
}
inline simde__m512 emulated_cvtph_ps(simde__m256i halves) {
  const simde__m256i_private from = simde__m256i_to_private(halves);
  simde__m512_private to;
  for (int half = 0; half < 2; ++half) to.m256[half] = _mm256_cvtph_ps(from.m128i[half]);
  return simde__m512_from_private(to);
}
inline simde__m256i emulated_cvtps_ph(simde__m512 values) {
  const simde__m512_private from = simde__m512_to_private(values);
  simde__m256i_private to;
  for (int half = 0; half < 2; ++half) to.m128i[half] = _mm256_cvtps_ph(from.m256[half], _MM_FROUND_TO_NEAREST_INT);
  return simde__m256i_from_private(to);
}
template <typename Value, typename Vector>
inline Vector emulated_maskz_loadu(unsigned lanes, const void* from) {
  Value values[sizeof(Vector) / sizeof(Value)] = {};
  for (std::size_t lane = 0; lane < sizeof values / sizeof *values; ++lane) {
    if (lanes >> lane & 1) values[lane] = static_cast<const Value*>(from)[lane];
  }
  Vector vector;
  std::memcpy(&vector, values, sizeof vector);
  return vector;
}
template <typename Value, typename Vector>
inline void emulated_mask_storeu(void* to, unsigned lanes, Vector vector) {
  Value values[sizeof(Vector) / sizeof(Value)];
  std::memcpy(values, &vector, sizeof values);
  for (std::size_t lane = 0; lane < sizeof values / sizeof *values; ++lane) {
    if (lanes >> lane & 1) static_cast<Value*>(to)[lane] = values[lane];
  }
}
#define _mm512_maskz_loadu_ps emulated_maskz_loadu<float, simde__m512>
#define _mm256_maskz_loadu_epi16 emulated_maskz_loadu<short, simde__m256i>
#define _mm512_mask_storeu_ps emulated_mask_storeu<float, simde__m512>
#define _mm256_mask_storeu_epi16 emulated_mask_storeu<short, simde__m256i>
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_cvtps_ph(values, to_nearest) emulated_cvtps_ph(values)
#else
#include <immintrin.h>
#endif
