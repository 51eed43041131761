// Binary convolution with VPOPCNTD and a carry-save step: two popcounts for three words.
//
// Let p = x0 xor w0, q = x1 xor w1, r = x2 xor w2 be the differing bits of three activation words and their weights.
// At each bit position p + q + r is a two-digit number: its ones are s = p xor q xor r, its twos the majority of p, q
// and r, so
//   popcount(p) + popcount(q) + popcount(r) = popcount(s) + 2 * popcount(majority(p, q, r)).
// s is (x0 xor x1 xor x2) xor (w0 xor w1 xor w2), and both sums of three are known beforehand: that of the weights is
// stored in place of w2, that of the activations is made once and serves all output channels. r = p xor q xor s is
// needed in the majority only, one VPTERNLOG of p, q and s. So three words, 1536 products, take 3 xor, 1 majority,
// 2 popcounts, 1 subtraction (from half of the products, as in avx512.cpp) and 1 addition: 8 operations instead of 9.
//
// The three words are the same one in the three columns of a kernel row or, where the kernel has one column, a third of
// the pixel's words apart; one or two words may remain and are counted as in avx512.cpp. So are the two columns that
// are left of a row's first or last pixel, w2 being the sum of the other two and of all three.
#include "bconv/avx512_tiles.h"

namespace ebnet::avx512 {
namespace {

// Truth tables over (a, b, c) with a the high index bit.
constexpr int kXor3 = 0x96;   // a xor b xor c
constexpr int kCarry = 0xD4;  // majority(a, b, a xor b xor c)

// The sums of three activation words: each lies in `sums` where the first of the three lies in `input`.
struct Sums {
  Triples triples;
  const std::uint8_t* input;
  const std::uint8_t* sums;
};

// The dot products of a plain tile of one block; kLeft, kRight and noinline as in avx512.cpp.
template <int kPixels, int kColumns, bool kLeft, bool kRight>
__attribute__((noinline)) void count_triples(const Tile& tile, const Sums& sums, std::int32_t* dots) {
  const Sizes sizes = tile.sizes;
  const int triples = sums.triples.per_row;
  const std::size_t distance = static_cast<std::size_t>(sums.triples.distance) * sizeof(std::uint32_t);
  Lanes halves[kPixels], twos[kPixels] = {};
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    const int outside = (kLeft && i == 0 ? 1 : 0) + (kRight && i == kPixels - 1 ? 1 : 0);
    halves[i] = (kColumns - outside) * tile.column_products() / 2 + Lanes{};
  }
  for (int ky = 0; ky < tile.rows; ++ky) {
    const std::uint8_t* row = tile.first + static_cast<std::size_t>(ky) * sizes.row_step;
    const std::uint32_t* weights = tile.weights + static_cast<std::size_t>(ky) * sizes.row_words;
    const std::uint8_t* sum_row = sums.sums + (row - sums.input);
    for (int triple = 0; triple < triples; ++triple) {
      const __m512i w0 = _mm512_loadu_si512(weights);
      const __m512i w1 = _mm512_loadu_si512(weights + kLanes);
      const __m512i w_sum = _mm512_loadu_si512(weights + 2 * kLanes);
      const std::uint8_t* pixel = row;
      const std::uint8_t* pixel_sum = sum_row;
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i, pixel += sizes.pixel_step, pixel_sum += sizes.pixel_step) {
        if (kLeft && i == 0) {
          halves[i] -= differing(broadcast_word(pixel + distance), w1);
          halves[i] -= differing(broadcast_word(pixel + 2 * distance), _mm512_ternarylogic_epi32(w0, w1, w_sum, kXor3));
        } else if (kRight && i == kPixels - 1) {
          halves[i] -= differing(broadcast_word(pixel), w0);
          halves[i] -= differing(broadcast_word(pixel + distance), w1);
        } else {
          const __m512i p = _mm512_xor_si512(broadcast_word(pixel), w0);
          const __m512i q = _mm512_xor_si512(broadcast_word(pixel + distance), w1);
          const __m512i sum = _mm512_xor_si512(broadcast_word(pixel_sum), w_sum);
          halves[i] -= popcount(sum);
          twos[i] += popcount(_mm512_ternarylogic_epi32(p, q, sum, kCarry));
        }
      }
      row += sizeof(std::uint32_t);
      sum_row += sizeof(std::uint32_t);
      weights += 3 * kLanes;
    }
  }
  if (kColumns == 1) {
    for (int ky = 0; ky < tile.rows; ++ky) {
      const std::uint8_t* row = tile.first + static_cast<std::size_t>(ky) * sizes.row_step + 3 * distance;
      const std::uint32_t* weights =
          tile.weights + static_cast<std::size_t>(ky) * sizes.row_words + triples * 3 * kLanes;
      for (int word = 0; word < sums.triples.rest; ++word, row += sizeof(std::uint32_t), weights += kLanes) {
        const __m512i w = _mm512_loadu_si512(weights);
        const std::uint8_t* pixel = row;
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i, pixel += sizes.pixel_step) halves[i] -= differing(broadcast_word(pixel), w);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    const Lanes half = halves[i] - (twos[i] + twos[i]);
    store_dots(dots + i * kDotStride, half + half);
  }
}

template <int kPixels>
void count_tile(const Tile& tile, const Sums& sums, std::int32_t* dots) {
  if (tile.shape.kernel_w == 1) return count_triples<kPixels, 1, false, false>(tile, sums, dots);
  if (tile.left()) {
    return tile.right() ? count_triples<kPixels, 3, true, true>(tile, sums, dots)
                        : count_triples<kPixels, 3, true, false>(tile, sums, dots);
  }
  return tile.right() ? count_triples<kPixels, 3, false, true>(tile, sums, dots)
                      : count_triples<kPixels, 3, false, false>(tile, sums, dots);
}

// The sum of the three words that begin at each word of the input rows that the task reads, in the places the words
// have in the input. Those that run over the end of a row or a pixel are never read.
void sum_triples(const ConvTask& task, const Triples& triples) {
  const ConvShape& s = *task.shape;
  const int first_y = task.row_begin * s.stride_h - s.pad_h;
  const int last_y = (task.row_end - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h - s.pad_h;
  const std::ptrdiff_t row_words = static_cast<std::ptrdiff_t>(s.in_w) * s.words_per_pixel() * 2;
  const std::ptrdiff_t distance = triples.distance;
  const std::uint32_t* from = reinterpret_cast<const std::uint32_t*>(task.input);
  std::uint32_t* to = static_cast<std::uint32_t*>(task.scratch);
  std::ptrdiff_t at = first_y < 0 ? 0 : first_y * row_words;
  const std::ptrdiff_t end = smaller(last_y + 1, s.in_h) * row_words - 2 * distance;
  for (; at + kLanes <= end; at += kLanes) {
    const __m512i x0 = _mm512_loadu_si512(from + at);
    const __m512i x1 = _mm512_loadu_si512(from + at + distance);
    const __m512i x2 = _mm512_loadu_si512(from + at + 2 * distance);
    _mm512_storeu_si512(to + at, _mm512_ternarylogic_epi32(x0, x1, x2, kXor3));
  }
  for (; at < end; ++at) to[at] = from[at] ^ from[at + distance] ^ from[at + 2 * distance];
}

}  // namespace

void run_carry_save(const ConvTask& task) {
  if (task.row_begin == task.row_end) return;
  const Sums sums{Triples(*task.shape), reinterpret_cast<const std::uint8_t*>(task.input),
                  static_cast<const std::uint8_t*>(task.scratch)};
  sum_triples(task, sums.triples);
  run_tiles(task, 1, [&sums](const Tile& tile, std::int32_t* dots) {
    tile.pixels == 7 ? count_tile<7>(tile, sums, dots) : count_tile<8>(tile, sums, dots);
    add_odd_products(tile, dots);
  });
}

}  // namespace ebnet::avx512
