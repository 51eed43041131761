// Lookups and sums: pair_lut.h has the idea.
#pragma once
#include "bconv/pair_lut_codes.h"

namespace ebnet::pair_lut {
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

EBNET_INLINE Bytes table_row(std::uint16_t code) { return load_table(kTable.rows + code); }

// The weights of three lookups, [block][3][lane]: those of one block serve so many pairs that they are worth three
// registers, those of several stay in memory.
template <int kBlocks>
struct Weights {
  const std::uint8_t* at;
  EBNET_INLINE explicit Weights(const std::uint8_t* weights) : at(weights) {}
  EBNET_INLINE Bytes look_up(Bytes row, int block, int lookup) const {
    return vectors::look_up(row, at + (3 * block + lookup) * kLanes);
  }
};

template <>
struct Weights<1> {
  Bytes first, second, third;
  EBNET_INLINE explicit Weights(const std::uint8_t* weights)
      : first(kept(load<Bytes>(weights))),
        second(kept(load<Bytes>(weights + kLanes))),
        third(kept(load<Bytes>(weights + 2 * kLanes))) {}
  EBNET_INLINE Bytes look_up(Bytes row, int, int lookup) const {
    return vectors::look_up(row, lookup == 0 ? first : lookup == 1 ? second : third);
  }
};

// What becomes of a tile's byte sums: twice the differing bits of each pixel and output channel, in 16 bits. Channels
// lie in the order of `count_of`. Byte sums that wait for the next ones, to be widened together, are held as they are.
struct Counts {
  alignas(64) std::uint16_t twice[kMaxBlocks][kTilePixels][kLanes];
  alignas(64) std::uint8_t held[kMaxBlocks][kTilePixels][kLanes];
};

// Byte sums of kPairs pairs of pixels and kBlocks blocks of kLanes output channels.
template <int kPairs, int kBlocks>
struct Sums {
  Bytes total[kPairs][kBlocks];
  Bytes high[kPairs][kBlocks];

  EBNET_INLINE void clear() {
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) total[p][b] = high[p][b] = Bytes{};
    }
  }

  // Three lookups of pair p in these rows of the table.
  EBNET_INLINE void add(int p, Bytes first, Bytes second, Bytes third, const Weights<kBlocks>& weights) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      add_to(p, b, weights.look_up(first, b, 0) + weights.look_up(second, b, 1) + weights.look_up(third, b, 2));
    }
  }

  // The same of all pairs, for machines with registers for all their rows: a block's weights are loaded once.
  EBNET_INLINE void add(const Bytes (&rows)[kPairs][3], const std::uint8_t* weights) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b, weights += 3 * kLanes) {
      const Bytes first = load<Bytes>(weights), second = load<Bytes>(weights + kLanes);
      const Bytes third = load<Bytes>(weights + 2 * kLanes);
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        add_to(p, b, look_up(rows[p][0], first) + look_up(rows[p][1], second) + look_up(rows[p][2], third));
      }
    }
  }

  // A sum of three lookups.
  EBNET_INLINE void add_to(int p, int b, Bytes s) {
    total[p][b] = kept(total[p][b] + s);
    high[p][b] = kept(add_shifted(high[p][b], s));
  }

  // Hands the sums over to the tile's pixels from `pixel` on, and sums up anew. `index` counts the flushes of a pixel.
  EBNET_INLINE void flush(int index, bool last, int pixel, Counts& counts) {
    const auto words = [](Bytes bytes) { return reinterpret_cast<Words>(bytes); };
    const auto bytes = [](Words words) { return reinterpret_cast<Bytes>(words); };
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      std::uint8_t* held = counts.held[b][pixel];
      std::uint16_t* twice = counts.twice[b][pixel];
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        const Bytes sixteen_high = bytes(words(high[p][b]) << 4) & 0xf0;
        const Bytes first = total[p][b] - sixteen_high;
        const Bytes strayed = bytes(words(first) >> 4 & 0x00f0);  // pair_lut.h tells where these bits come from
        const Bytes second = kShiftsStray ? high[p][b] - strayed : high[p][b];
        hand_over(first, index, last, held + 2 * p * kLanes, twice + 2 * p * kLanes);
        hand_over(second, index, last, held + (2 * p + 1) * kLanes, twice + (2 * p + 1) * kLanes);
      }
    }
    clear();
  }

  static EBNET_INLINE void hand_over(Bytes sums, int index, bool last, std::uint8_t* held, std::uint16_t* twice) {
    const bool even = index % 2 == 0;
    if (even && !last) return store(held, sums);
    const Bytes other = even ? Bytes{} : load<Bytes>(held);
    Words lower = twice_sums(sums, other, false);
    Words upper = twice_sums(sums, other, true);
    if (index > 1) {
      lower += load<Words>(twice);
      upper += load<Words>(twice + kLanes / 2);
    }
    store(twice, lower);
    store(twice + kLanes / 2, upper);
  }
};

}  // namespace
}  // namespace ebnet::pair_lut
