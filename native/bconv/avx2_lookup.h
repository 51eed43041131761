// Lookups and sums of the AVX2 kernel: avx2.cpp has the idea.
#pragma once
#include "base/inline.h"
#include "bconv/avx2_codes.h"

namespace ebnet::avx2 {
namespace {

constexpr int kMaxTriples = 21;  // of lookups that byte sums can hold: 3 * 4 * 21 = 252

struct PairTable {
  alignas(64) std::uint8_t rows[kRows * kRows * kRowBytes] = {};

  static constexpr int differing(int activation, int weight) {
    if (activation == kPad) return 2;
    int count = 0;
    for (int bit = 0; bit < 4; ++bit) count += ((activation ^ weight) >> bit) & 1;
    return count;
  }

  constexpr PairTable() {
    for (int a = 0; a < kRows; ++a) {
      for (int b = 0; b < kRows; ++b) {
        for (int w = 0; w < 16; ++w) {
          rows[(a * kRows + b) * kRowBytes + w] =
              static_cast<std::uint8_t>(differing(a, w) + 16 * differing(b, w));
        }
      }
    }
  }
};

constexpr PairTable kTable;

EBNET_INLINE __m256i table_row(std::uint16_t code) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kTable.rows + code)));
}

EBNET_INLINE __m256i load(const void* bytes) { return _mm256_load_si256(static_cast<const __m256i*>(bytes)); }
EBNET_INLINE void store(void* bytes, __m256i value) { _mm256_store_si256(static_cast<__m256i*>(bytes), value); }

// 32 lookups with weights from memory. VPSHUFB takes them from there at no cost but the load's, and registers are
// scarce: a compiler that knew what this does would keep weights in them and spill sums.
EBNET_INLINE __m256i look_up(__m256i row, const std::uint8_t* weights) {
  __m256i found;
  asm("vpshufb %2, %1, %0" : "=x"(found) : "x"(row), "m"(*reinterpret_cast<const __m256i*>(weights)));
  return found;
}

// A value that stays in its register. (By value: what an asm statement changes in place, the compiler stores as well.)
EBNET_INLINE __m256i kept(__m256i value) {
  asm("" : "+x"(value));
  return value;
}

// The weights of three lookups, [block][3][32 lanes]: those of one block serve so many pairs that they are worth three
// registers, those of several stay in memory.
template <int kBlocks>
struct Weights {
  const std::uint8_t* at;
  EBNET_INLINE explicit Weights(const std::uint8_t* weights) : at(weights) {}
  EBNET_INLINE __m256i look_up(__m256i row, int block, int lookup) const {
    return avx2::look_up(row, at + (3 * block + lookup) * kLanes);
  }
};

template <>
struct Weights<1> {
  __m256i first, second, third;
  EBNET_INLINE explicit Weights(const std::uint8_t* weights)
      : first(kept(load(weights))), second(kept(load(weights + kLanes))), third(kept(load(weights + 2 * kLanes))) {}
  EBNET_INLINE __m256i look_up(__m256i row, int, int lookup) const {
    return _mm256_shuffle_epi8(row, lookup == 0 ? first : lookup == 1 ? second : third);
  }
};

// What becomes of a tile's byte sums: twice the differing bits of each pixel and output channel, in 16 bits. Channels
// lie in the order of `count_of`. Byte sums that wait for the next ones, to be widened together, are held as they are.
struct Counts {
  alignas(64) std::uint16_t twice[kMaxBlocks][kTilePixels][kLanes];
  alignas(64) std::uint8_t held[kMaxBlocks][kTilePixels][kLanes];
};

// Byte sums of kPairs pairs of pixels and kBlocks blocks of 32 output channels.
template <int kPairs, int kBlocks>
struct Sums {
  __m256i total[kPairs][kBlocks];
  __m256i high[kPairs][kBlocks];

  EBNET_INLINE void clear() {
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) total[p][b] = high[p][b] = _mm256_setzero_si256();
    }
  }

  // Three lookups of pair p in these rows of the table.
  EBNET_INLINE void add(int p, __m256i first, __m256i second, __m256i third, const Weights<kBlocks>& weights) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const __m256i s = _mm256_add_epi8(
          _mm256_add_epi8(weights.look_up(first, b, 0), weights.look_up(second, b, 1)), weights.look_up(third, b, 2));
      total[p][b] = kept(_mm256_add_epi8(total[p][b], s));
      high[p][b] = kept(_mm256_add_epi8(high[p][b], high_fields(s)));
    }
  }

  // s >> 4, of two bytes at a time: avx2.cpp tells what becomes of the bits that stray. Lookups and shifts share two of
  // four vector pipes: a multiplication takes another, where there is a register for its constant.
  static EBNET_INLINE __m256i high_fields(__m256i s) {
    return kBlocks == 1 ? _mm256_srli_epi16(s, 4) : _mm256_mulhi_epu16(s, _mm256_set1_epi16(1 << 12));
  }

  // Hands the sums over to the tile's pixels from `pixel` on, and sums up anew. `index` counts the flushes of a pixel.
  EBNET_INLINE void flush(int index, bool last, int pixel, Counts& counts) {
    const __m256i high_mask = _mm256_set1_epi8(static_cast<char>(0xf0));
    const __m256i even_mask = _mm256_set1_epi16(0x00f0);
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      std::uint8_t* held = counts.held[b][pixel];
      std::uint16_t* twice = counts.twice[b][pixel];
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        const __m256i sixteen_high = _mm256_and_si256(_mm256_slli_epi16(high[p][b], 4), high_mask);
        const __m256i first = _mm256_sub_epi8(total[p][b], sixteen_high);
        const __m256i strayed = _mm256_and_si256(_mm256_srli_epi16(first, 4), even_mask);
        const __m256i second = _mm256_sub_epi8(high[p][b], strayed);
        hand_over(first, index, last, held + 2 * p * kLanes, twice + 2 * p * kLanes);
        hand_over(second, index, last, held + (2 * p + 1) * kLanes, twice + (2 * p + 1) * kLanes);
      }
    }
    clear();
  }

  static EBNET_INLINE void hand_over(__m256i bytes, int index, bool last, std::uint8_t* held, std::uint16_t* twice) {
    const bool even = index % 2 == 0;
    if (even && !last) return store(held, bytes);
    const __m256i other = even ? _mm256_setzero_si256() : load(held);
    const __m256i two = _mm256_set1_epi8(2);
    __m256i lower = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(bytes, other), two);
    __m256i upper = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(bytes, other), two);
    if (index > 1) {
      lower = _mm256_add_epi16(lower, load(twice));
      upper = _mm256_add_epi16(upper, load(twice + 16));
    }
    store(twice, lower);
    store(twice + 16, upper);
  }
};

}  // namespace
}  // namespace ebnet::avx2
