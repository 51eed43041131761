// int8 layers on 16 lanes: AVX-512 with VNNI, whose one instruction adds four products to a sum.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "dense/int8_levels.h"

namespace ebnet {
namespace {

using Ints = __m512i;
using Reals = __m512;
using Weights = Ints;
using Sixteen = __m128i;
constexpr int kLanes = 16, kTilePixels = 12, kTileBlocks = 2, kLoneBlocks = 4;

inline Ints load_ints(const void* from) { return _mm512_loadu_si512(from); }
inline Weights load_weights(const void* from) { return load_ints(from); }
inline const std::int32_t* first_sums(const Int8Conv& conv) { return conv.start.as<std::int32_t>(); }
inline Reals load_reals(const float* from) { return _mm512_loadu_ps(from); }
inline void store_reals(float* to, Reals reals) { _mm512_storeu_ps(to, reals); }

inline Ints input_run(const std::uint8_t* from) {
  int four = 0;
  __builtin_memcpy(&four, from, sizeof four);
  return _mm512_set1_epi32(four);
}

inline Ints dot(Ints sums, Ints inputs, Ints weights) { return _mm512_dpbusd_epi32(sums, inputs, weights); }

inline Reals to_reals(Ints sums) { return _mm512_cvtepi32_ps(sums); }
inline Reals fused(Reals a, Reals b, Reals c) { return _mm512_fmadd_ps(a, b, c); }

inline Reals not_negative(Reals reals) { return _mm512_max_ps(_mm512_setzero_ps(), reals); }

inline Reals negative_scaled(Reals reals, Reals slope) {
  const __mmask16 negative = _mm512_cmp_ps_mask(reals, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_mul_ps(reals, negative, slope, reals);
}

inline Ints clamped_bytes(Reals reals, Reals inverse, Reals zero) {
  // Both give their second argument where the first is NaN.
  const Reals scaled = _mm512_max_ps(fused(reals, inverse, zero), _mm512_setzero_ps());
  return _mm512_cvtps_epi32(_mm512_min_ps(scaled, _mm512_set1_ps(255.0f)));
}
inline Ints clamped_bytes(Reals reals, float inverse, float zero) {
  return clamped_bytes(reals, _mm512_set1_ps(inverse), _mm512_set1_ps(zero));
}

inline void store_bytes(std::uint8_t* to, const Ints* ints) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(ints[0]));
}

inline Sixteen greater(Sixteen a, Sixteen b) { return _mm_max_epu8(a, b); }

}  // namespace
}  // namespace ebnet

#define EBNET_INT8_KERNELS kInt8Vnni
#include "dense/int8_vector.h"
