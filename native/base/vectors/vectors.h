// Vectors of kLanes bytes by the compiler's vector types: what all instruction sets have in common. avx2.h, neon.h and
// simd128.h add the few operations that compilers have no common word for; a source that is written over them is
// compiled once for each. Lanes are bytes, 16-bit words, 32-bit integers or floats.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/inline.h"

namespace ebnet::vectors {
namespace {

constexpr int kFloats = kLanes / 4;  // floats in a vector

typedef std::uint8_t Bytes __attribute__((vector_size(kLanes)));
typedef std::uint16_t Words __attribute__((vector_size(kLanes)));
typedef std::uint32_t Unsigned __attribute__((vector_size(kLanes)));
typedef std::int32_t Ints __attribute__((vector_size(kLanes)));
typedef float Floats __attribute__((vector_size(kLanes)));
typedef std::uint16_t Sixteen __attribute__((vector_size(32)));  // 16 words, in one vector or in two

template <typename Vector>
EBNET_INLINE Vector load(const void* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename Vector>
EBNET_INLINE void store(void* to, Vector value) {
  std::memcpy(to, &value, sizeof value);
}

EBNET_INLINE Bytes all_bytes(std::uint8_t value) { return value - Bytes{}; }
EBNET_INLINE Words all_words(std::uint16_t value) { return value - Words{}; }
EBNET_INLINE Floats all_floats(float value) { return value - Floats{}; }

}  // namespace
}  // namespace ebnet::vectors
