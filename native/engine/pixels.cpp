#include "engine/pixels.h"

#include <cmath>
#include <cstring>
#include <initializer_list>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ebnet {

namespace {

#ifdef __SSE2__
// Four pixels of three planes at a time, with the instructions every x86-64 CPU has; returns how many pixels it made.
// 0 * x is NaN where x is not finite, so the sum of all of these is 0 or NaN.
int interleave_three(const float* red, const float* green, const float* blue, int width, float* to, float* poison) {
  const __m128 zero = _mm_setzero_ps();
  __m128 sums[3] = {zero, zero, zero};
  int x = 0;
  for (; x + 4 <= width; x += 4, to += 12) {
    const __m128 r = _mm_loadu_ps(red + x), g = _mm_loadu_ps(green + x), b = _mm_loadu_ps(blue + x);
    sums[0] = _mm_add_ps(sums[0], _mm_mul_ps(zero, r));
    sums[1] = _mm_add_ps(sums[1], _mm_mul_ps(zero, g));
    sums[2] = _mm_add_ps(sums[2], _mm_mul_ps(zero, b));
    const __m128 b0_r1 = _mm_shuffle_ps(b, r, _MM_SHUFFLE(1, 1, 0, 0));
    const __m128 g1_b1 = _mm_shuffle_ps(g, b, _MM_SHUFFLE(1, 1, 1, 1));
    const __m128 b2_r3 = _mm_shuffle_ps(b, r, _MM_SHUFFLE(3, 3, 2, 2));
    const __m128 g3_b3 = _mm_shuffle_ps(g, b, _MM_SHUFFLE(3, 3, 3, 3));
    _mm_storeu_ps(to, _mm_shuffle_ps(_mm_unpacklo_ps(r, g), b0_r1, _MM_SHUFFLE(2, 0, 1, 0)));
    _mm_storeu_ps(to + 4, _mm_shuffle_ps(g1_b1, _mm_unpackhi_ps(r, g), _MM_SHUFFLE(1, 0, 2, 0)));
    _mm_storeu_ps(to + 8, _mm_shuffle_ps(b2_r3, g3_b3, _MM_SHUFFLE(2, 0, 2, 0)));
  }
  float lanes[4];
  _mm_storeu_ps(lanes, _mm_add_ps(_mm_add_ps(sums[0], sums[1]), sums[2]));
  *poison += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return x;
}

__m128i bytes_of(__m128 reals, float inverse, float zero) {
  const __m128 scaled = _mm_add_ps(_mm_mul_ps(reals, _mm_set1_ps(inverse)), _mm_set1_ps(zero));
  return _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(scaled, _mm_setzero_ps()), _mm_set1_ps(255.0f)));
}

// Of two pixels in the low bytes of 32 bits each, the six bytes in a row.
std::uint64_t six_bytes(__m128i pixels) {
  const auto two = static_cast<std::uint64_t>(_mm_cvtsi128_si64(pixels));
  return (two & 0xFFFFFFu) | (two >> 32 << 24);
}

// Four pixels of three planes at a time; returns how many pixels it made. Each store reaches two bytes into what the next
// one writes, and so the last pixel is left.
std::size_t three_to_bytes(const float* red, const float* green, const float* blue, std::size_t pixels,
                           const float* inverse, const float* zero, std::uint8_t* to, float* poison) {
  __m128 sum = _mm_setzero_ps();
  std::size_t i = 0;
  for (; i + 5 <= pixels; i += 4, to += 12) {
    const __m128 r = _mm_loadu_ps(red + i), g = _mm_loadu_ps(green + i), b = _mm_loadu_ps(blue + i);
    for (const __m128 plane : {r, g, b}) sum = _mm_add_ps(sum, _mm_mul_ps(_mm_setzero_ps(), plane));
    const __m128i low = _mm_or_si128(bytes_of(r, inverse[0], zero[0]), _mm_slli_epi32(bytes_of(g, inverse[1], zero[1]), 8));
    const __m128i four = _mm_or_si128(low, _mm_slli_epi32(bytes_of(b, inverse[2], zero[2]), 16));
    const std::uint64_t first = six_bytes(four), second = six_bytes(_mm_unpackhi_epi64(four, four));
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + 6, &second, sizeof second);
  }
  float lanes[4];
  _mm_storeu_ps(lanes, sum);
  *poison += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return i;
}
#endif

}  // namespace

bool pixels_of_planes(const float* from, std::size_t plane, int channels, std::size_t pixels, const float* inverse,
                      const float* zero, std::uint8_t* to) {
  float poison = 0.0f;
  std::size_t first = 0;
#ifdef __SSE2__
  if (channels == 3) {
    first = three_to_bytes(from, from + plane, from + 2 * plane, pixels, inverse, zero, to, &poison);
  }
#endif
  for (int c = 0; c < channels; ++c, from += plane) {
    for (std::size_t i = first; i < pixels; ++i) {
      poison += 0.0f * from[i];
      const float scaled = from[i] * inverse[c] + zero[c];
      const float inside = scaled > 0.0f ? (scaled < 255.0f ? scaled : 255.0f) : 0.0f;
      to[i * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)] =
          static_cast<std::uint8_t>(std::nearbyint(inside));
    }
  }
  return !std::isnan(poison);
}

bool interleave_planes(const float* from, std::size_t plane, int channels, int width, float* to, std::size_t stride) {
  float poison = 0.0f;
  int first = 0;
#ifdef __SSE2__
  if (channels == 3 && stride == 3) first = interleave_three(from, from + plane, from + 2 * plane, width, to, &poison);
#endif
  for (int c = 0; c < channels; ++c, from += plane) {
    for (int x = first; x < width; ++x) {
      poison += 0.0f * from[x];
      to[static_cast<std::size_t>(x) * stride + static_cast<std::size_t>(c)] = from[x];
    }
  }
  return !std::isnan(poison);
}

}  // namespace ebnet
