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

// to + (from >> 4). x86 shifts no bytes, but words: the upper bits of an even byte come from the odd one.
constexpr bool kShiftsStray = true;
EBNET_INLINE Bytes add_shifted(Bytes to, Bytes from) {
  return to + reinterpret_cast<Bytes>(reinterpret_cast<Words>(from) >> 4);
}

EBNET_INLINE Words lower_words(Bytes bytes) {
  return reinterpret_cast<Words>(wasm_u16x8_extend_low_u8x16(reinterpret_cast<v128_t>(bytes)));
}

EBNET_INLINE Words upper_words(Bytes bytes) {
  return reinterpret_cast<Words>(wasm_u16x8_extend_high_u8x16(reinterpret_cast<v128_t>(bytes)));
}

// Masks, whose lanes have all bits or none, in half as wide lanes.
EBNET_INLINE Words narrowed_ints(Ints a, Ints b) {
  return reinterpret_cast<Words>(wasm_i16x8_narrow_i32x4(reinterpret_cast<v128_t>(a), reinterpret_cast<v128_t>(b)));
}
EBNET_INLINE Bytes narrowed_words(Words a, Words b) {
  return reinterpret_cast<Bytes>(wasm_i8x16_narrow_i16x8(reinterpret_cast<v128_t>(a), reinterpret_cast<v128_t>(b)));
}

// One bit for each byte, of which each is 0 or 255.
EBNET_INLINE std::uint32_t bits_of_mask(Bytes mask) { return wasm_i8x16_bitmask(reinterpret_cast<v128_t>(mask)); }

// WebAssembly knows no halves. Shifted to where a float has them, exponent and fraction are the number but for the bias of
// the exponent, 127 - 15: a multiplication by 2^112 puts it right, subnormal halves too, and exactly. Infinities and NaNs
// keep an exponent of all ones.
EBNET_INLINE Floats load_halves(const void* halves) {
  const auto words = reinterpret_cast<Unsigned>(wasm_u32x4_load16x4(halves));
  const Unsigned shifted = (words & 0x7FFF) << 13;
  const Floats scaled = reinterpret_cast<Floats>(shifted) * 0x1p112f;
  const auto past = reinterpret_cast<Unsigned>(shifted >= 0x0F800000u) & 0x7F800000u;
  return reinterpret_cast<Floats>(reinterpret_cast<Unsigned>(scaled) | past | (words & 0x8000) << 16);
}

// Rarely wanted: lane by lane.
EBNET_INLINE void store_halves(void* to, Floats values) {
  const Half halves[] = {float_to_half(values[0]), float_to_half(values[1]), float_to_half(values[2]),
                         float_to_half(values[3])};
  std::memcpy(to, halves, sizeof halves);
}

}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/lanes16.h"
