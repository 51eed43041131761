#include "bconv/made_up.h"

#include <algorithm>
#include <cstring>

namespace ebnet {

MadeUpLayer made_up_layer(const ConvShape& shape) {
  std::uint64_t state = 1;
  // xorshift64*: quick enough to be nothing beside the layer it makes up.
  const auto random = [&state] {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
  };
  MadeUpLayer layer;
  layer.canonical = AlignedBytes(shape.canonical_bytes());
  std::uint8_t* bytes = layer.canonical.data();
  const std::size_t row = shape.canonical_bytes_per_channel();
  const int used = shape.taps() * shape.in_per_group() % 8;
  for (std::size_t i = 0; i < layer.canonical.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes + i, &word, std::min(sizeof word, layer.canonical.size() - i));
  }
  for (std::size_t end = row; used != 0 && end <= layer.canonical.size(); end += row) {
    bytes[end - 1] = static_cast<std::uint8_t>(bytes[end - 1] & ((1u << used) - 1));
  }
  const auto words = static_cast<std::size_t>(shape.words_per_group());
  const int tail = shape.in_per_group() % 64;
  const std::size_t count = static_cast<std::size_t>(shape.in_h) * static_cast<std::size_t>(shape.in_w) *
                            static_cast<std::size_t>(shape.words_per_pixel());
  layer.input = AlignedBytes(count * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = (i + 1) % words == 0;
    const std::uint64_t mask = last && tail != 0 ? (std::uint64_t{1} << tail) - 1 : ~std::uint64_t{0};
    layer.input.as<std::uint64_t>()[i] = random() & mask;
  }
  return layer;
}

}  // namespace ebnet
