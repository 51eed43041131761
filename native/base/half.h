// IEEE half precision: kept as its bits, widened to single exactly, narrowed to the nearest.
#pragma once
#include <cstdint>

#include "base/float_bits.h"

namespace ebnet {

using Half = std::uint16_t;

namespace {

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
  return float_of_bits(word);
}

// To the nearest, ties to even; past the largest half, infinity. A NaN stays one.
inline Half float_to_half(float value) {
  const std::uint32_t word = bits_of_float(value);
  const auto sign = static_cast<Half>((word >> 16) & 0x8000u);
  const std::uint32_t magnitude = word & 0x7FFFFFFFu;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  } else if (magnitude >= 0x477FF000u) {  // 65520 lies between the largest half and the next, which is not one
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the least normal half
    half = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // Subnormal: the last place of 0.5 is 2^-24, that of subnormal halves, so an addition rounds as wanted.
    float raised = 0.0f;
    std::memcpy(&raised, &magnitude, sizeof raised);
    raised += 0.5f;
    std::memcpy(&half, &raised, sizeof half);
    half -= 0x3F000000u;
  }
  return static_cast<Half>(sign | half);
}

}  // namespace
}  // namespace ebnet
