#include "bits/binarize.h"

#include <cstring>

#include "bits/planes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ebnet {
namespace {

// Signs of up to 64 channels as one word.
inline std::uint64_t sign_word(const float* values, const float* scale, const float* shift, int count) {
  std::uint64_t word = 0;
  for (int lane = 0; lane < count; ++lane) {
    word |= static_cast<std::uint64_t>(scale[lane] * values[lane] + shift[lane] >= 0.0f) << lane;
  }
  return word;
}

#ifdef __SSE2__
constexpr int kTogether = 16;

// kTogether channels of all pixels, with the instructions every x86-64 CPU has: parameters and sums stay in registers.
// Their bits are two bytes of a word, bit_stride bytes apart.
void binarize_sixteen(const float* input, std::size_t input_stride, int pixels, const float* bn_scale,
                      const float* bn_shift, std::uint8_t* bits, std::size_t bit_stride, float* sums) {
  __m128 scale[4], shift[4], totals[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    scale[v] = _mm_loadu_ps(bn_scale + 4 * v);
    shift[v] = _mm_loadu_ps(bn_shift + 4 * v);
    totals[v] = sums != nullptr ? _mm_loadu_ps(sums + 4 * v) : _mm_setzero_ps();
  }
  for (int pixel = 0; pixel < pixels; ++pixel, input += input_stride, bits += bit_stride) {
    __m128i masks[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m128 value = _mm_loadu_ps(input + 4 * v);
      totals[v] = _mm_add_ps(totals[v], value);
      const __m128 normal = _mm_add_ps(_mm_mul_ps(scale[v], value), shift[v]);
      masks[v] = _mm_castps_si128(_mm_cmpge_ps(normal, _mm_setzero_ps()));
    }
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(masks[0], masks[1]), _mm_packs_epi32(masks[2], masks[3]));
    const auto signs = static_cast<std::uint16_t>(_mm_movemask_epi8(bytes));
    std::memcpy(bits, &signs, sizeof signs);
  }
#pragma GCC unroll 4
  for (int v = 0; v < 4 && sums != nullptr; ++v) _mm_storeu_ps(sums + 4 * v, totals[v]);
}
#endif

}  // namespace

void binarize(const float* input, std::size_t input_stride, int pixels, int channels, int per_group,
              const float* bn_scale, const float* bn_shift, std::uint64_t* bits, float* sums) {
#ifdef __SSE2__
  if (bits != nullptr && per_group % kTogether == 0) {
    const std::size_t words = bit_words_per_pixel(channels, per_group);
    if (per_group % 64 != 0) std::memset(bits, 0, words * static_cast<std::size_t>(pixels) * sizeof *bits);
    for (int c = 0; c < channels; c += kTogether) {
      const auto word = static_cast<std::size_t>(c / per_group * ((per_group + 63) / 64) + c % per_group / 64);
      auto* place = reinterpret_cast<std::uint8_t*>(bits + word) + c % per_group % 64 / 8;
      binarize_sixteen(input + c, input_stride, pixels, bn_scale + c, bn_shift + c, place, words * sizeof *bits,
                       sums != nullptr ? sums + c : nullptr);
    }
    return;
  }
#endif
  for (int pixel = 0; pixel < pixels; ++pixel, input += input_stride) {
    for (int c = 0; sums != nullptr && c < channels; ++c) sums[c] += input[c];
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
