// bfloat16: the upper half of a single, kept as its bits.
#pragma once
#include <cstdint>

#include "base/float_bits.h"

namespace ebnet {

using Bfloat16 = std::uint16_t;

namespace {

inline float bfloat16_to_float(Bfloat16 upper) {
  return float_of_bits(static_cast<std::uint32_t>(upper) << 16);
}

// To the nearest, ties to even. Of NaNs only those that arithmetic makes of numbers stay what they are.
inline Bfloat16 float_to_bfloat16(float value) {
  const std::uint32_t word = bits_of_float(value);
  return static_cast<Bfloat16>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
}

}  // namespace
}  // namespace ebnet
