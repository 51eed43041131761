#include "engine/pixels.h"

#include <cmath>

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
#endif

}  // namespace

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
