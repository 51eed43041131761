// The forward convolution's tile where both sides are signs: words of 32 in the place of numbers.
//
// With a bit for each sign (1 = +1), 32 products are -1 where the bits differ and +1 where they agree. Padding is no
// sign at all: a mask of all ones where there is a pixel, else zero, takes it out of both counts, so
//
//   to[l][o] = products seen from l - 2 sum over taps and planes of popcount((signs[l + tap] xor weights[tap][o]) and mask[l + tap])
//
// The sum of signs as floats is the same whole number, exactly. Lanes are output channels, as in unit_sums.h.
#pragma once
#include <cstdint>

#include "base/lanes.h"
#include "train/sign_sums.h"
#include "train/tiles.h"
#ifdef __AVX512VPOPCNTDQ__
#include <immintrin.h>
#endif

namespace ebnet {
namespace {

typedef std::uint32_t Words __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));

inline Words load_words(const float* from) {
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

inline Words splat_word(const float* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return word - Words{};
}

#ifdef __AVX512VPOPCNTDQ__
inline Words popcount(Words words) {
  return reinterpret_cast<Words>(_mm512_popcnt_epi32(reinterpret_cast<__m512i>(words)));
}
#else
// Sums bits in fields of 2, 4, 8, 16 and 32 bits.
inline Words popcount(Words words) {
  words = words - ((words >> 1) & 0x55555555u);
  words = (words & 0x33333333u) + ((words >> 2) & 0x33333333u);
  words = (words + (words >> 4)) & 0x0f0f0f0fu;
  words = words + (words >> 8);
  return (words + (words >> 16)) & 0x3fu;
}
#endif

template <int kRows, int kVectors>
struct SignTile {
  static void run(const SignTask& t) {
    Words counts[kRows][kVectors] = {};
    for (int plane = 0; plane < t.planes; ++plane) {
      const size_t signs = size(plane) * t.plane, mask = size(t.planes) * t.plane;
      for (const Run* run = t.runs; run < t.runs + t.count; ++run) {
        const float* weights = run->weights + size(plane) * t.weights;
        for (size_t k = run->place; k < run->place + size(run->length); ++k, weights += kVectors * kLanes) {
          Words w[kVectors];
#pragma GCC unroll 2
          for (int i = 0; i < kVectors; ++i) w[i] = load_words(weights + i * kLanes);
#pragma GCC unroll 12
          for (int r = 0; r < kRows; ++r) {
            const float* at = t.from + t.places[r].from + k;
            const Words a = splat_word(at + signs), seen = splat_word(at + mask);
#pragma GCC unroll 2
            for (int i = 0; i < kVectors; ++i) counts[r][i] += popcount((a ^ w[i]) & seen);
          }
        }
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const int products = t.down[t.places[r].row] * t.right[t.places[r].column];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) {
        const Mask sums = products - 2 * reinterpret_cast<Mask>(counts[r][i]);
        store(t.to + t.places[r].to + i * kLanes, __builtin_convertvector(sums, Vector));
      }
    }
  }
};

inline void run_sign_sums(int rows, bool two, const SignTask& t) {
  two ? run_tile<SignTile, 2>(rows, t) : run_tile<SignTile, 1>(rows, t);
}

}  // namespace
}  // namespace ebnet
