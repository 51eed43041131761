// int8 layers on 8 lanes: AVX2. Two products in 16 bits (which kLargestInt8Weight lets fit), two of these in 32.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "dense/int8_levels.h"

namespace ebnet {
namespace {

using Ints = __m256i;
using Reals = __m256;
using Weights = Ints;
using Sixteen = __m128i;
constexpr int kLanes = 8, kTilePixels = 5, kTileBlocks = 1, kLoneBlocks = 4;

inline Ints load_ints(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
inline Weights load_weights(const void* from) { return load_ints(from); }
inline const std::int32_t* first_sums(const Int8Conv& conv) { return conv.start.as<std::int32_t>(); }
inline Reals load_reals(const float* from) { return _mm256_loadu_ps(from); }
inline void store_reals(float* to, Reals reals) { _mm256_storeu_ps(to, reals); }

inline Ints input_run(const std::uint8_t* from) {
  int four = 0;
  __builtin_memcpy(&four, from, sizeof four);
  return _mm256_set1_epi32(four);
}

inline Ints dot(Ints sums, Ints inputs, Ints weights) {
  const Ints pairs = _mm256_maddubs_epi16(inputs, weights);
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

inline Reals to_reals(Ints sums) { return _mm256_cvtepi32_ps(sums); }
inline Reals fused(Reals a, Reals b, Reals c) { return _mm256_fmadd_ps(a, b, c); }

inline Reals not_negative(Reals reals) { return _mm256_max_ps(_mm256_setzero_ps(), reals); }

inline Reals negative_scaled(Reals reals, Reals slope) {
  const Reals negative = _mm256_cmp_ps(reals, _mm256_setzero_ps(), _CMP_LT_OQ);
  return _mm256_blendv_ps(reals, _mm256_mul_ps(slope, reals), negative);
}

inline Ints clamped_bytes(Reals reals, Reals inverse, Reals zero) {
  // What is negative becomes 0 when it is packed, and so does NaN, which the minimum lets pass as its second argument: it
  // is converted to the least of all numbers.
  return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(255.0f), fused(reals, inverse, zero)));
}
inline Ints clamped_bytes(Reals reals, float inverse, float zero) {
  return clamped_bytes(reals, _mm256_set1_ps(inverse), _mm256_set1_ps(zero));
}

inline void store_bytes(std::uint8_t* to, const Ints* ints) {
  // Packing works within halves of 128 bits; the permutation puts the eight shorts of each in order.
  const Ints shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32(ints[0], ints[1]), 0xD8);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

inline Sixteen greater(Sixteen a, Sixteen b) { return _mm_max_epu8(a, b); }

}  // namespace
}  // namespace ebnet

#define EBNET_INT8_KERNELS kInt8Avx2
#include "dense/int8_vector.h"
