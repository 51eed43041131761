// IEEE half precision: kept as its bits, widened to single exactly.
#pragma once
#include <cstdint>
#include <cstring>

namespace ebnet {

using Half = std::uint16_t;

inline bool is_finite(Half half) { return (half & 0x7C00u) != 0x7C00u; }

inline float half_to_float(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  std::uint32_t exponent = (half >> 10) & 0x1Fu;
  std::uint32_t fraction = half & 0x3FFu;
  std::uint32_t word = sign;
  if (exponent == 0x1Fu) {
    word |= 0x7F800000u | (fraction << 13);
  } else if (exponent != 0) {
    word |= ((exponent + 112u) << 23) | (fraction << 13);
  } else if (fraction != 0) {
    // Subnormal: shift until the leading one is the hidden bit.
    exponent = 113u;
    while ((fraction & 0x400u) == 0) {
      fraction <<= 1;
      --exponent;
    }
    word |= (exponent << 23) | ((fraction & 0x3FFu) << 13);
  }
  float value = 0.0f;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace ebnet
