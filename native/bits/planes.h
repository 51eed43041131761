// Bit planes: binary activations as 64-bit words, [pixel][group][words].
#pragma once
#include <cstddef>

namespace ebnet {
namespace {

// 64-bit words of one pixel in a bit plane of `channels` channels in groups of `per_group`.
inline std::size_t bit_words_per_pixel(int channels, int per_group) {
  return static_cast<std::size_t>(channels / per_group) * static_cast<std::size_t>((per_group + 63) / 64);
}

// Where the bit of a channel lives inside one pixel of a bit plane.
struct BitPlace {
  std::size_t word;
  unsigned bit;
};

inline BitPlace bit_place(int channel, int per_group) {
  const int inside = channel % per_group;
  const std::size_t words = static_cast<std::size_t>((per_group + 63) / 64);
  return {static_cast<std::size_t>(channel / per_group) * words + static_cast<std::size_t>(inside / 64),
          static_cast<unsigned>(inside % 64)};
}

}  // namespace
}  // namespace ebnet
