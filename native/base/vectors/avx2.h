// 32 lanes: AVX2, with the conversions of F16C.
#pragma once
#include <immintrin.h>

namespace ebnet::vectors {
namespace {
constexpr int kLanes = 32;
constexpr bool kManyRegisters = false;  // 16
}  // namespace
}  // namespace ebnet::vectors

#include "base/vectors/vectors.h"

namespace ebnet::vectors {
namespace {

EBNET_INLINE __m256i raw(Bytes bytes) { return reinterpret_cast<__m256i>(bytes); }
EBNET_INLINE __m256i raw(Words words) { return reinterpret_cast<__m256i>(words); }

// 16 bytes, in both halves of the vector.
EBNET_INLINE Bytes load_table(const std::uint8_t* row) {
  return reinterpret_cast<Bytes>(_mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(row))));
}

// table[index], index below 16.
EBNET_INLINE Bytes look_up(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(_mm256_shuffle_epi8(raw(table), raw(index)));
}

// The same with indices from memory. VPSHUFB takes them from there at no cost but the load's, and registers are scarce:
// a compiler that knew what this does would keep them in registers and spill others.
EBNET_INLINE Bytes look_up(Bytes table, const std::uint8_t* index) {
  Bytes found;
  asm("vpshufb %2, %1, %0" : "=x"(found) : "x"(table), "m"(*reinterpret_cast<const Bytes*>(index)));
  return found;
}

// A value that stays in its register. (By value: what an asm statement changes in place, the compiler stores as well.)
template <typename Vector>
EBNET_INLINE Vector kept(Vector value) {
  asm("" : "+x"(value));
  return value;
}

// to + (from >> 4). The CPU shifts no bytes, but words: the upper bits of an even byte come from the odd one.
constexpr bool kShiftsStray = true;
EBNET_INLINE Bytes add_shifted(Bytes to, Bytes from) {
  return to + reinterpret_cast<Bytes>(reinterpret_cast<Words>(from) >> 4);
}

// Interleaving works on the halves of vectors: the lane of a channel is such that after bytes were interleaved twice,
// four lanes of either half at a time, eight neighbours lie in one vector.
EBNET_INLINE Words twice_sums(Bytes a, Bytes b, bool upper) {
  const __m256i pairs = upper ? _mm256_unpackhi_epi8(raw(a), raw(b)) : _mm256_unpacklo_epi8(raw(a), raw(b));
  return reinterpret_cast<Words>(_mm256_maddubs_epi16(pairs, _mm256_set1_epi8(2)));
}

// Floats whose lower 16 bits are words, and whose upper 16 bits are `above`.
EBNET_INLINE Floats under(Words words, std::uint16_t above, bool upper) {
  const __m256i high = _mm256_set1_epi16(static_cast<short>(above));
  return reinterpret_cast<Floats>(upper ? _mm256_unpackhi_epi16(raw(words), high)
                                        : _mm256_unpacklo_epi16(raw(words), high));
}

EBNET_INLINE Floats choose_by_sign(Floats value, Floats where_negative, Floats otherwise) {
  return _mm256_blendv_ps(otherwise, where_negative, value);
}

// The first `lanes` floats alone, any number of them: kWhole says that they are a vector or more.
EBNET_INLINE __m256i first_lanes(int lanes) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
template <bool kWhole>
EBNET_INLINE Floats load_first(const void* from, int lanes) {
  return kWhole ? load<Floats>(from) : _mm256_maskload_ps(static_cast<const float*>(from), first_lanes(lanes));
}
template <bool kWhole>
EBNET_INLINE void store_first(void* to, Floats values, int lanes) {
  kWhole ? store(to, values) : _mm256_maskstore_ps(static_cast<float*>(to), first_lanes(lanes), values);
}

EBNET_INLINE Ints rounded(Floats values) { return reinterpret_cast<Ints>(_mm256_cvtps_epi32(values)); }

// Signs of 16 floats in order: the bit is 1 where the sign is not set. (The NaNs that x86 makes of numbers have the sign.)
EBNET_INLINE std::uint16_t not_negative(const Floats* values) {
  const int lower = _mm256_movemask_ps(values[0]), upper = _mm256_movemask_ps(values[1]);
  return static_cast<std::uint16_t>(~(lower | upper << 8));
}

// The same of eight floats.
EBNET_INLINE std::uint8_t not_negative_eight(const Floats* values) {
  return static_cast<std::uint8_t>(~_mm256_movemask_ps(values[0]));
}

// The 16 nibbles of a word, lowest first.
EBNET_INLINE Sixteen spread_nibbles(const std::uint64_t* word) {
  const __m128i mask = _mm_set1_epi8(0x0f);
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(word));
  const __m128i nibbles = _mm_unpacklo_epi8(_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
  return reinterpret_cast<Sixteen>(_mm256_cvtepu8_epi16(nibbles));
}

EBNET_INLINE Floats load_halves(const void* halves) {
  return _mm256_cvtph_ps(load<__m128i>(halves));
}

EBNET_INLINE void store_halves(void* to, Floats values) {
  store(to, _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// Each word in the upper half of a float.
EBNET_INLINE Floats load_upper_halves(const void* words) {
  return reinterpret_cast<Floats>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load<__m128i>(words)), 16));
}

// The upper half of each lane.
EBNET_INLINE void store_upper_halves(void* to, Unsigned values) {
  const __m256i upper = _mm256_srli_epi32(reinterpret_cast<__m256i>(values), 16);
  store(to, _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
}

}  // namespace
}  // namespace ebnet::vectors
