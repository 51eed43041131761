#include "bits/binarize.h"

#include "bconv/bconv.h"

namespace ebnet {

void binarize(const float* input, std::size_t input_stride, int pixels, int channels, int per_group,
              const float* bn_scale, const float* bn_shift, std::uint64_t* bits, float* sums) {
  const std::size_t words = bit_words_per_pixel(channels, per_group);
  const std::size_t group_words = static_cast<std::size_t>((per_group + 63) / 64);
  for (int pixel = 0; pixel < pixels; ++pixel, input += input_stride) {
    if (sums != nullptr) {
      for (int c = 0; c < channels; ++c) sums[c] += input[c];
    }
    if (bits == nullptr) continue;
    int channel = 0;
    for (std::uint64_t* group = bits; channel < channels; group += group_words) {
      for (int inside = 0; inside < per_group; inside += 64) {
        const int lanes = per_group - inside < 64 ? per_group - inside : 64;
        std::uint64_t word = 0;
        for (int lane = 0; lane < lanes; ++lane, ++channel) {
          const float normal = bn_scale[channel] * input[channel] + bn_shift[channel];
          word |= static_cast<std::uint64_t>(normal >= 0.0f) << lane;
        }
        group[inside / 64] = word;
      }
    }
    bits += words;
  }
}

}  // namespace ebnet
