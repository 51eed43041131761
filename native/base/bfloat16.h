// bfloat16: the upper half of a single, kept as its bits.
#pragma once
#include <cstdint>
#include <cstring>

namespace ebnet {

using Bfloat16 = std::uint16_t;

namespace {

inline float bfloat16_to_float(Bfloat16 upper) {
  const std::uint32_t word = static_cast<std::uint32_t>(upper) << 16;
  float value = 0.0f;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// To the nearest, ties to even. Of NaNs only those that arithmetic makes of numbers stay what they are.
inline Bfloat16 float_to_bfloat16(float value) {
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return static_cast<Bfloat16>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
}

}  // namespace
}  // namespace ebnet
