// 16 lanes: NEON, which every 64-bit ARM CPU has.
#pragma once
#include <arm_neon.h>

namespace ebnet::vectors {
namespace {
constexpr int kLanes = 16;
constexpr bool kManyRegisters = true;  // 32
}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/vectors.h"

namespace ebnet::vectors {
namespace {

// table[index], index below 16.
EBNET_INLINE Bytes look_up(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(vqtbl1q_u8(reinterpret_cast<uint8x16_t>(table), reinterpret_cast<uint8x16_t>(index)));
}

EBNET_INLINE Bytes look_up(Bytes table, const std::uint8_t* index) { return look_up(table, load<Bytes>(index)); }

// to + (from >> 4), in one instruction and byte by byte.
constexpr bool kShiftsStray = false;
EBNET_INLINE Bytes add_shifted(Bytes to, Bytes from) {
  return reinterpret_cast<Bytes>(vsraq_n_u8(reinterpret_cast<uint8x16_t>(to), reinterpret_cast<uint8x16_t>(from), 4));
}

EBNET_INLINE Words lower_words(Bytes bytes) {
  return reinterpret_cast<Words>(vmovl_u8(vget_low_u8(reinterpret_cast<uint8x16_t>(bytes))));
}

EBNET_INLINE Words upper_words(Bytes bytes) {
  return reinterpret_cast<Words>(vmovl_high_u8(reinterpret_cast<uint8x16_t>(bytes)));
}

// Masks, whose lanes have all bits or none, in half as wide lanes.
EBNET_INLINE Words narrowed_ints(Ints a, Ints b) {
  return reinterpret_cast<Words>(vuzp1q_u16(reinterpret_cast<uint16x8_t>(a), reinterpret_cast<uint16x8_t>(b)));
}
EBNET_INLINE Bytes narrowed_words(Words a, Words b) {
  return reinterpret_cast<Bytes>(vuzp1q_u8(reinterpret_cast<uint8x16_t>(a), reinterpret_cast<uint8x16_t>(b)));
}

// One bit for each byte, of which each is 0 or 255: NEON cannot collect signs, but it can add bytes up.
EBNET_INLINE std::uint32_t bits_of_mask(Bytes mask) {
  const Bytes places = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto bits = reinterpret_cast<uint8x16_t>(mask & places);
  const uint8x16_t pairs = vpaddq_u8(bits, bits);
  const uint8x16_t fours = vpaddq_u8(pairs, pairs);
  return vgetq_lane_u16(vreinterpretq_u16_u8(vpaddq_u8(fours, fours)), 0);
}

EBNET_INLINE Floats load_halves(const void* halves) {
  return reinterpret_cast<Floats>(vcvt_f32_f16(vreinterpret_f16_u16(load<uint16x4_t>(halves))));
}

EBNET_INLINE void store_halves(void* to, Floats values) {
  store(to, vreinterpret_u16_f16(vcvt_f16_f32(reinterpret_cast<float32x4_t>(values))));
}

}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/lanes16.h"
