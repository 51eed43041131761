#include "bits/binarize.h"

#include <cstring>

#include "base/vectors/here.h"
#include "bits/planes.h"

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

#ifdef EBNET_VECTORS_HERE
using vectors::Floats;
using vectors::load;
using vectors::store;
constexpr int kTogether = 16;

// kTogether channels of all pixels, with instructions that every such CPU has: parameters and sums stay in registers.
// Their bits are two bytes of a word, bit_stride bytes apart.
void binarize_sixteen(const float* input, std::size_t input_stride, int pixels, const float* bn_scale,
                      const float* bn_shift, std::uint8_t* bits, std::size_t bit_stride, float* sums) {
  Floats scale[4], shift[4], totals[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    scale[v] = load<Floats>(bn_scale + 4 * v);
    shift[v] = load<Floats>(bn_shift + 4 * v);
    totals[v] = sums != nullptr ? load<Floats>(sums + 4 * v) : Floats{};
  }
  for (int pixel = 0; pixel < pixels; ++pixel, input += input_stride, bits += bit_stride) {
    Floats normal[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Floats value = load<Floats>(input + 4 * v);
      totals[v] += value;
      normal[v] = scale[v] * value + shift[v];
    }
    const auto signs = static_cast<std::uint16_t>(vectors::not_negative(normal));
    std::memcpy(bits, &signs, sizeof signs);
  }
#pragma GCC unroll 4
  for (int v = 0; v < 4 && sums != nullptr; ++v) store(sums + 4 * v, totals[v]);
}
#endif

}  // namespace

void binarize(const float* input, std::size_t input_stride, int pixels, int channels, int per_group,
              const float* bn_scale, const float* bn_shift, std::uint64_t* bits, float* sums) {
#ifdef EBNET_VECTORS_HERE
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
