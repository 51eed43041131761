// Bit planes: binary activations as 64-bit words, [pixel][group][words].
#pragma once
#include <cstddef>

namespace ebnet {
namespace {

// 64-bit words of one pixel in a bit plane of `channels` channels in groups of `per_group`.
inline std::size_t bit_words_per_pixel(int channels, int per_group) {
  return static_cast<std::size_t>(channels / per_group) * static_cast<std::size_t>((per_group + 63) / 64);
}

}  // namespace
}  // namespace ebnet
