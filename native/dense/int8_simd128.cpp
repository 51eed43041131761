// int8 layers on WebAssembly's vectors, which multiply words: a run is two bytes, whose products one instruction adds.
#include <wasm_simd128.h>

#include "dense/int8_lanes4.h"

namespace ebnet {
namespace {

using Weights = v128_t;
using Sixteen = v128_t;
constexpr int kTilePixels = 2, kTileBlocks = 1, kLoneBlocks = 1;

inline const std::int32_t* first_sums(const Int8Conv& conv) { return conv.start.as<std::int32_t>(); }
inline Weights load_weights(const void* from) { return wasm_i16x8_load8x8(from); }
inline v128_t input_run(const std::uint8_t* from) { return wasm_u16x8_extend_low_u8x16(wasm_v128_load16_splat(from)); }

inline Ints dot(Ints sums, v128_t inputs, Weights weights) {
  return sums + reinterpret_cast<Ints>(wasm_i32x4_dot_i16x8(inputs, weights));
}

// WebAssembly has no fused multiply-add, and the other levels' results must be met in every bit. In double precision the
// product of two floats is exact; its sum with c is rounded, and then rounded again to a float. That is one rounding too
// many only where the first one ends on a tie of the second: where the 29 bits that a float lacks are 1 and zeros. Below
// the normal floats more bits are lacking, so these are looked at closely as well.
typedef double Doubles __attribute__((vector_size(16)));
typedef std::int64_t Longs __attribute__((vector_size(16)));

inline Longs doubtful(Doubles sum) {
  const Longs bits = reinterpret_cast<Longs>(sum);
  const auto small = reinterpret_cast<Longs>(reinterpret_cast<Doubles>(wasm_f64x2_abs(reinterpret_cast<v128_t>(sum))) <
                                             0x1p-126 - Doubles{});
  return ((bits & 0x1FFFFFFF) == 0x10000000) | small;
}

// Where the sum is not exact (its error e is known exactly) and its last bit is 0, its neighbour on the other side of the
// true value is taken: a rounding to odd, after which no tie arises that was none (Boldo and Melquiond, 2008).
inline Doubles to_odd(Doubles product, Doubles c) {
  const Doubles sum = product + c;
  const Doubles added = sum - product;
  const Doubles e = (product - (sum - added)) + (c - added);
  const Longs bits = reinterpret_cast<Longs>(sum);
  const Longs inexact = reinterpret_cast<Longs>((e < 0.0) | (e > 0.0));
  const Longs even = (bits & 1) - 1;
  const Longs away = ((reinterpret_cast<Longs>(e) ^ bits) >> 63) | 1;  // from 0, where e has the sum's sign
  return reinterpret_cast<Doubles>(bits + (away & inexact & even));
}

inline Doubles lower(Reals of) {
  return reinterpret_cast<Doubles>(wasm_f64x2_promote_low_f32x4(reinterpret_cast<v128_t>(of)));
}
inline Doubles upper(Reals of) { return lower(__builtin_shufflevector(of, of, 2, 3, 2, 3)); }

inline Reals to_floats(Doubles first, Doubles second) {
  const auto floats = [](Doubles of) {
    return reinterpret_cast<Reals>(wasm_f32x4_demote_f64x2_zero(reinterpret_cast<v128_t>(of)));
  };
  return __builtin_shufflevector(floats(first), floats(second), 0, 1, 4, 5);
}

inline Reals fused(Reals a, Reals b, Reals c) {
  const Doubles first = lower(a) * lower(b), second = upper(a) * upper(b);
  const Doubles sums[] = {first + lower(c), second + upper(c)};
  const Longs doubts = doubtful(sums[0]) | doubtful(sums[1]);
  if (__builtin_expect(!wasm_v128_any_true(reinterpret_cast<v128_t>(doubts)), 1)) return to_floats(sums[0], sums[1]);
  return to_floats(to_odd(first, lower(c)), to_odd(second, upper(c)));
}

inline void store_bytes(std::uint8_t* to, const Ints* ints) {
  const auto words = [&](int i) {
    return wasm_i16x8_narrow_i32x4(reinterpret_cast<v128_t>(ints[i]), reinterpret_cast<v128_t>(ints[i + 1]));
  };
  wasm_v128_store(to, wasm_u8x16_narrow_i16x8(words(0), words(2)));
}

inline Sixteen greater(Sixteen a, Sixteen b) { return wasm_u8x16_max(a, b); }

}  // namespace
}  // namespace ebnet

#define EBNET_INT8_KERNELS kInt8Simd128
#include "dense/int8_vector.h"
