// 16 lanes: SSE2, which every x86-64 CPU has. Only what code for any CPU needs of it.
#pragma once
#include <emmintrin.h>

namespace ebnet::vectors {
namespace {
constexpr int kLanes = 16;
}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/vectors.h"

namespace ebnet::vectors {
namespace {

// 1 where a float is at least 0, of 16 floats in order.
EBNET_INLINE std::uint16_t not_negative(const Floats* values) {
  const auto mask = [&](int v) { return reinterpret_cast<__m128i>(values[v] >= 0.0f); };
  const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(mask(0), mask(1)), _mm_packs_epi32(mask(2), mask(3)));
  return static_cast<std::uint16_t>(_mm_movemask_epi8(bytes));
}

}  // namespace
}  // namespace ebnet::vectors
