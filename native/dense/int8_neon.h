// int8 layers on NEON, with the dot product where the compiler may use it and without. Neither multiplies unsigned by signed
// bytes: what is multiplied is the byte less 128, and sums start with 128 times the weights' sum.
#pragma once
#include <arm_neon.h>

#include "dense/int8_lanes4.h"

namespace ebnet {
namespace {

using Weights = int8x16_t;
using Sixteen = uint8x16_t;
constexpr int kTileBlocks = 1, kLoneBlocks = 2;

inline const std::int32_t* first_sums(const Int8Conv& conv) { return conv.signed_start.as<std::int32_t>(); }
inline Weights load_weights(const void* from) { return vld1q_s8(static_cast<const std::int8_t*>(from)); }

inline int8x16_t input_run(const std::uint8_t* from) {
  std::uint32_t four = 0;
  std::memcpy(&four, from, sizeof four);
  return vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u));
}

#ifdef __ARM_FEATURE_DOTPROD
constexpr int kTilePixels = 6;
inline Ints dot(Ints sums, int8x16_t inputs, Weights weights) {
  return reinterpret_cast<Ints>(vdotq_s32(reinterpret_cast<int32x4_t>(sums), inputs, weights));
}
#else
// Two of the products, at most 2 * 128 * 64, fit 16 bits.
constexpr int kTilePixels = 5;
inline Ints dot(Ints sums, int8x16_t inputs, Weights weights) {
  const int16x8_t lower = vmull_s8(vget_low_s8(inputs), vget_low_s8(weights));
  const int16x8_t upper = vmull_high_s8(inputs, weights);
  return reinterpret_cast<Ints>(vpadalq_s16(reinterpret_cast<int32x4_t>(sums), vpaddq_s16(lower, upper)));
}
#endif

inline Reals fused(Reals a, Reals b, Reals c) {
  return reinterpret_cast<Reals>(vfmaq_f32(reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(a),
                                           reinterpret_cast<float32x4_t>(b)));
}

inline void store_bytes(std::uint8_t* to, const Ints* ints) {
  const auto words = [&](int i) {
    return vuzp1q_u16(reinterpret_cast<uint16x8_t>(ints[i]), reinterpret_cast<uint16x8_t>(ints[i + 1]));
  };
  vst1q_u8(to, vuzp1q_u8(vreinterpretq_u8_u16(words(0)), vreinterpretq_u8_u16(words(2))));
}

inline Sixteen greater(Sixteen a, Sixteen b) { return vmaxq_u8(a, b); }

}  // namespace
}  // namespace ebnet

#include "dense/int8_vector.h"
