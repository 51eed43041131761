// 16 lanes: WebAssembly's 128-bit vectors. A browser translates them to the CPU's: to NEON or to SSE and AVX, whose
// 16 registers are fewer.
#pragma once
#include <wasm_simd128.h>

namespace ebnet::vectors {
namespace {
constexpr int kLanes = 16;
constexpr bool kManyRegisters = false;
}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/vectors.h"
#include "base/half.h"

namespace ebnet::vectors {
namespace {

// table[index], index below 16.
EBNET_INLINE Bytes look_up(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(wasm_i8x16_swizzle(reinterpret_cast<v128_t>(table), reinterpret_cast<v128_t>(index)));
}

EBNET_INLINE Bytes look_up(Bytes table, const std::uint8_t* index) { return look_up(table, load<Bytes>(index)); }

EBNET_INLINE Words lower_words(Bytes bytes) {
  return reinterpret_cast<Words>(wasm_u16x8_extend_low_u8x16(reinterpret_cast<v128_t>(bytes)));
}

EBNET_INLINE Words upper_words(Bytes bytes) {
  return reinterpret_cast<Words>(wasm_u16x8_extend_high_u8x16(reinterpret_cast<v128_t>(bytes)));
}

// One bit for each byte, of which each is 0 or 255.
EBNET_INLINE std::uint32_t bits_of_mask(Bytes mask) { return wasm_i8x16_bitmask(reinterpret_cast<v128_t>(mask)); }

// WebAssembly knows no halves: lane by lane.
EBNET_INLINE Floats load_halves(const void* halves) {
  Half from[kFloats];
  std::memcpy(from, halves, sizeof from);
  return Floats{half_to_float(from[0]), half_to_float(from[1]), half_to_float(from[2]), half_to_float(from[3])};
}

EBNET_INLINE void store_halves(void* to, Floats values) {
  const Half halves[] = {float_to_half(values[0]), float_to_half(values[1]), float_to_half(values[2]),
                         float_to_half(values[3])};
  std::memcpy(to, halves, sizeof halves);
}

}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/lanes16.h"
