// Weight bits as the packed file holds them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/shape.h"

namespace ebnet {

// Bit of one weight: canonical order is [out channel][ky][kx][in / groups], LSB first, 1 = +1, each output channel
// padded to whole bytes.
inline unsigned canonical_bit(const std::uint8_t* canonical, const ConvShape& shape, int out_channel, int tap,
                              int channel) {
  const std::size_t bit = static_cast<std::size_t>(tap) * static_cast<std::size_t>(shape.in_per_group()) +
                          static_cast<std::size_t>(channel);
  const std::size_t base = static_cast<std::size_t>(out_channel) * shape.canonical_bytes_per_channel();
  return (canonical[base + bit / 8] >> (bit % 8)) & 1u;
}

}  // namespace ebnet
