// 16 lanes: what NEON and WebAssembly's SIMD have in common beyond vectors.h. Where a vector is not made of halves,
// interleaving keeps the order of lanes.
#pragma once
#include "base/vectors/vectors.h"

namespace ebnet::vectors {
namespace {

// 16 bytes are all of a vector.
EBNET_INLINE Bytes load_table(const std::uint8_t* row) { return load<Bytes>(row); }

template <typename Vector>
EBNET_INLINE Vector kept(Vector value) {
  return value;
}

EBNET_INLINE Words twice_sums(Bytes a, Bytes b, bool upper) {
  const Words sums = upper ? upper_words(a) + upper_words(b) : lower_words(a) + lower_words(b);
  return sums + sums;
}

// Floats whose lower 16 bits are words, and whose upper 16 bits are `above`.
EBNET_INLINE Floats under(Words words, std::uint16_t above, bool upper) {
  const Words high = all_words(above);
  const Words mixed = upper ? __builtin_shufflevector(words, high, 4, 12, 5, 13, 6, 14, 7, 15)
                            : __builtin_shufflevector(words, high, 0, 8, 1, 9, 2, 10, 3, 11);
  return reinterpret_cast<Floats>(mixed);
}

EBNET_INLINE Floats choose_by_sign(Floats value, Floats where_negative, Floats otherwise) {
  const Ints negative = reinterpret_cast<Ints>(value) >> 31;
  return reinterpret_cast<Floats>((reinterpret_cast<Ints>(where_negative) & negative) |
                                  (reinterpret_cast<Ints>(otherwise) & ~negative));
}

// The first `lanes` floats alone, any number of them: kWhole says that they are a vector or more. There are no masks, but
// four cases, each of a size that the compiler knows; out of line, since an epilogue asks for a score of such copies.
[[gnu::noinline]] inline void copy_floats(void* to, const void* from, int lanes) {
  if (lanes >= 4) std::memcpy(to, from, 4 * sizeof(float));
  if (lanes == 3) std::memcpy(to, from, 3 * sizeof(float));
  if (lanes == 2) std::memcpy(to, from, 2 * sizeof(float));
  if (lanes == 1) std::memcpy(to, from, sizeof(float));
}
template <bool kWhole>
EBNET_INLINE Floats load_first(const void* from, int lanes) {
  if constexpr (kWhole) return load<Floats>(from);
  Floats values{};
  copy_floats(&values, from, lanes);
  return values;
}
template <bool kWhole>
EBNET_INLINE void store_first(void* to, Floats values, int lanes) {
  if constexpr (kWhole) return store(to, values);
  copy_floats(to, &values, lanes);
}

EBNET_INLINE Ints rounded(Floats values) { return __builtin_convertvector(values, Ints); }  // of whole numbers only

// 1 where a float is at least 0, of 16 floats in order. (Not by their signs: a NaN may have none.)
EBNET_INLINE std::uint16_t not_negative(const Floats* values) {
  const Words first = narrowed_ints(values[0] >= 0.0f, values[1] >= 0.0f);
  const Words second = narrowed_ints(values[2] >= 0.0f, values[3] >= 0.0f);
  return static_cast<std::uint16_t>(bits_of_mask(narrowed_words(first, second)));
}

// The same of eight floats.
EBNET_INLINE std::uint8_t not_negative_eight(const Floats* values) {
  const Floats both[] = {values[0], values[1], values[0], values[1]};
  return static_cast<std::uint8_t>(not_negative(both));
}

// The 16 nibbles of a word, lowest first.
EBNET_INLINE Sixteen spread_nibbles(const std::uint64_t* word) {
  std::uint64_t twice[] = {*word, *word};
  const Bytes bytes = load<Bytes>(twice);
  const Bytes lower = bytes & 0x0f, upper = bytes >> 4;
  const Bytes mixed = __builtin_shufflevector(lower, upper, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  Sixteen nibbles;
  const Words halves[] = {lower_words(mixed), upper_words(mixed)};
  std::memcpy(&nibbles, halves, sizeof nibbles);
  return nibbles;
}

// Each word in the upper half of a float.
EBNET_INLINE Floats load_upper_halves(const void* words) {
  std::uint64_t four;
  std::memcpy(&four, words, sizeof four);
  const std::uint64_t pair[] = {four, 0};
  return reinterpret_cast<Floats>(
      __builtin_shufflevector(Words{}, load<Words>(pair), 0, 8, 0, 9, 0, 10, 0, 11));
}

// The upper half of each lane.
EBNET_INLINE void store_upper_halves(void* to, Unsigned values) {
  const Words words = reinterpret_cast<Words>(values);
  const Words upper = __builtin_shufflevector(words, words, 1, 3, 5, 7, 1, 3, 5, 7);
  std::memcpy(to, &upper, sizeof upper / 2);
}

}  // namespace
}  // namespace ebnet::vectors
