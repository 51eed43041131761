#include "engine/pixels.h"

#include <cmath>
#include <cstring>

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

// Eight pixels of a plane as 16-bit words, rounded; `least` is told of each. What has no place in 32 bits, NaN and infinity
// among it, becomes the least of all words.
__m128i words_of(const float* plane, __m128 inverse, __m128 zero, __m128i* least) {
  const auto four = [&](const float* from) {
    return _mm_cvtps_epi32(_mm_add_ps(_mm_mul_ps(_mm_loadu_ps(from), inverse), zero));
  };
  const __m128i words = _mm_packs_epi32(four(plane), four(plane + 4));
  *least = _mm_min_epi16(*least, words);
  return words;
}

// Pixels of three bytes each in 32 bits: the twelve bytes in a row, and two more that others write.
void store_four(std::uint8_t* to, __m128i pixels) {
  const __m128i first = _mm_set1_epi64x(0xFFFFFF), second = _mm_set1_epi64x(0xFFFFFF000000);
  const __m128i sixes = _mm_or_si128(_mm_and_si128(pixels, first), _mm_and_si128(_mm_srli_epi64(pixels, 8), second));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), sixes);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 6), _mm_unpackhi_epi64(sixes, sixes));
}

// Sixteen pixels of three planes at a time; returns how many pixels it made. Packing keeps words within 0 to 255. A word
// that was the least of all may stand for a number that packing would take for another: then none counts as made. The
// planes often come from memory, and the CPU's own prefetching ends with each page.
std::size_t three_to_bytes(const float* const (&planes)[3], std::size_t pixels, const float* inverse, const float* zero,
                           std::uint8_t* to) {
  constexpr std::size_t kAhead = 256;
  __m128 factors[3], terms[3];
  for (int c = 0; c < 3; ++c) {
    factors[c] = _mm_set1_ps(inverse[c]);
    terms[c] = _mm_set1_ps(zero[c]);
  }
  __m128i least = _mm_setzero_si128();
  std::size_t i = 0;
  for (; i + 17 <= pixels; i += 16, to += 48) {  // the last store reaches into the next pixel
    __m128i bytes[3];
    for (int c = 0; c < 3; ++c) {
      const float* const from = planes[c] + i;
      __builtin_prefetch(from + kAhead);
      bytes[c] = _mm_packus_epi16(words_of(from, factors[c], terms[c], &least),
                                  words_of(from + 8, factors[c], terms[c], &least));
    }
    const __m128i none = _mm_setzero_si128();
    const __m128i lower = _mm_unpacklo_epi8(bytes[0], bytes[1]), upper = _mm_unpackhi_epi8(bytes[0], bytes[1]);
    const __m128i lower_blue = _mm_unpacklo_epi8(bytes[2], none), upper_blue = _mm_unpackhi_epi8(bytes[2], none);
    store_four(to, _mm_unpacklo_epi16(lower, lower_blue));
    store_four(to + 12, _mm_unpackhi_epi16(lower, lower_blue));
    store_four(to + 24, _mm_unpacklo_epi16(upper, upper_blue));
    store_four(to + 36, _mm_unpackhi_epi16(upper, upper_blue));
  }
  return _mm_movemask_epi8(_mm_cmpeq_epi16(least, _mm_set1_epi16(-32768))) == 0 ? i : 0;
}
#endif

}  // namespace

bool pixels_of_planes(const float* from, std::size_t plane, int channels, std::size_t pixels, const float* inverse,
                      const float* zero, std::uint8_t* to) {
  float poison = 0.0f;
  std::size_t first = 0;
#ifdef __SSE2__
  if (channels == 3) {
    first = three_to_bytes({from, from + plane, from + 2 * plane}, pixels, inverse, zero, to);
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
