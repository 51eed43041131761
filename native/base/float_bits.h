// A single's bits as an integer, and back.
#pragma once
#include <cstdint>
#include <cstring>

namespace ebnet {
namespace {

inline std::uint32_t bits_of_float(float value) {
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

inline float float_of_bits(std::uint32_t word) {
  float value = 0.0f;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace
}  // namespace ebnet
