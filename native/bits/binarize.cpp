#include "bits/binarize.h"

#include "bconv/bconv.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ebnet {
namespace {

// Signs of up to 64 channels as one word. On x86-64 four at a time, with the instructions every such CPU has.
inline std::uint64_t sign_word(const float* values, const float* scale, const float* shift, int count) {
  std::uint64_t word = 0;
  int lane = 0;
#ifdef __SSE2__
  for (; lane + 4 <= count; lane += 4) {
    const __m128 product = _mm_mul_ps(_mm_loadu_ps(scale + lane), _mm_loadu_ps(values + lane));
    const __m128 normal = _mm_add_ps(product, _mm_loadu_ps(shift + lane));
    const int signs = _mm_movemask_ps(_mm_cmpge_ps(normal, _mm_setzero_ps()));
    word |= static_cast<std::uint64_t>(signs) << lane;
  }
#endif
  for (; lane < count; ++lane) {
    word |= static_cast<std::uint64_t>(scale[lane] * values[lane] + shift[lane] >= 0.0f) << lane;
  }
  return word;
}

inline void add_to(float* sums, const float* values, int count) {
  int c = 0;
#ifdef __SSE2__
  for (; c + 4 <= count; c += 4) _mm_storeu_ps(sums + c, _mm_add_ps(_mm_loadu_ps(sums + c), _mm_loadu_ps(values + c)));
#endif
  for (; c < count; ++c) sums[c] += values[c];
}

}  // namespace

void binarize(const float* input, std::size_t input_stride, int pixels, int channels, int per_group,
              const float* bn_scale, const float* bn_shift, std::uint64_t* bits, float* sums) {
  for (int pixel = 0; pixel < pixels; ++pixel, input += input_stride) {
    if (sums != nullptr) add_to(sums, input, channels);
    if (bits == nullptr) continue;
    for (int group = 0; group < channels; group += per_group) {
      for (int inside = 0; inside < per_group; inside += 64) {
        const int c = group + inside;
        const int count = per_group - inside < 64 ? per_group - inside : 64;
        *bits++ = sign_word(input + c, bn_scale + c, bn_shift + c, count);
      }
    }
  }
}

}  // namespace ebnet
