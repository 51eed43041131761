#include "bits/binarize.h"

#include <cstring>

#include "base/vectors/here.h"
#include "bits/bit_runs.h"

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

// Up to kTogether channels of all pixels, with instructions that every such CPU has: parameters and sums stay in
// registers. Where there are fewer, loads are of copies, and what lies past them counts for nothing.
void binarize_sixteen(const float* input, std::size_t input_stride, int pixels, int channels, const float* bn_scale,
                      const float* bn_shift, const BitRuns<kTogether>& runs, std::uint64_t* bits, std::size_t bit_stride,
                      float* sums) {
  const std::size_t bytes = static_cast<std::size_t>(channels) * sizeof(float);
  const bool all = channels == kTogether, two_bytes = all && runs.are_bytes(channels);
  float copy[kTogether] = {};
  const auto first = [&](const float* values) {
    if (all) return values;
    std::memcpy(copy, values, bytes);
    return static_cast<const float*>(copy);
  };
  Floats scale[4], shift[4], totals[4] = {};
  const auto load_all = [&](const float* values, Floats* to) {
    values = first(values);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) to[v] = load<Floats>(values + 4 * v);
  };
  load_all(bn_scale, scale);
  load_all(bn_shift, shift);
  if (sums != nullptr) load_all(sums, totals);
  for (int pixel = 0; pixel < pixels; ++pixel, input += input_stride, bits += bit_stride) {
    const float* values = first(input);
    Floats normal[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Floats value = load<Floats>(values + 4 * v);
      totals[v] += value;
      normal[v] = scale[v] * value + shift[v];
    }
    const std::uint16_t signs = vectors::not_negative(normal);
    if (two_bytes) {
      std::memcpy(reinterpret_cast<std::uint8_t*>(bits) + runs.first_byte(), &signs, sizeof signs);
    } else {
      runs.put(bits, signs);
    }
  }
  if (sums != nullptr) std::memcpy(sums, totals, bytes);
}
#endif

}  // namespace

void binarize(const float* input, std::size_t input_stride, int pixels, int channels, int per_group,
              const float* bn_scale, const float* bn_shift, std::uint64_t* bits, float* sums) {
#ifdef EBNET_VECTORS_HERE
  if (bits != nullptr) {
    const std::size_t words = bit_words_per_pixel(channels, per_group);
    if (per_group % 64 != 0) std::memset(bits, 0, words * static_cast<std::size_t>(pixels) * sizeof *bits);
    for (int c = 0; c < channels; c += kTogether) {
      const int some = channels - c < kTogether ? channels - c : kTogether;
      binarize_sixteen(input + c, input_stride, pixels, some, bn_scale + c, bn_shift + c, BitRuns<kTogether>(c, some, per_group),
                       bits, words, sums != nullptr ? sums + c : nullptr);
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
