// Counting by popcount for any kernel, padding, dilation and tile: slower than the plain tiles of avx512.cpp, since
// every tap finds its pixels anew.
//
// Padding: (a xor w) and m, in one VPTERNLOG, where m is 0 for a tap outside the image, so that it counts nothing; the
// pixel's n in dot = n - 2 * popcount counts the taps inside. Rows outside are skipped.
#pragma once
#include "bconv/avx512_tiles.h"

namespace ebnet::avx512 {
namespace {

// xor of the first two, and-ed with the third: truth table over (a, b, c) with a the high index bit.
constexpr int kXorAnd = 0x28;

// The dot products of kPixels pixels and kBlocks blocks.
template <int kPixels, int kBlocks>
void count_any(const Tile& tile, std::int32_t* dots) {
  const ConvShape& s = tile.shape;
  const int words = tile.sizes.words;
  Lanes counts[kPixels][kBlocks] = {};
  for (int ky = 0; ky < tile.rows; ++ky) {
    const std::uint8_t* row = tile.first + static_cast<std::size_t>(ky) * tile.sizes.row_step;
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      const std::uint8_t* pixels[kPixels];
      std::int32_t masks[kPixels];
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i) {
        const int column = i * s.stride_w + kx * s.dilation_w;
        const int in_x = tile.first_column() + column;
        const bool inside = in_x >= 0 && in_x < s.in_w;
        masks[i] = inside ? -1 : 0;
        pixels[i] = inside ? row + static_cast<std::size_t>(column) * tile.sizes.pixel_bytes : tile.input;
      }
      const std::uint32_t* weights = tile.weights + static_cast<std::size_t>((ky * s.kernel_w + kx) * words) * kLanes;
      for (int word = 0; word < words; ++word, weights += kLanes) {
        __m512i w[kBlocks];
#pragma GCC unroll 2
        for (int b = 0; b < kBlocks; ++b) {
          w[b] = _mm512_loadu_si512(weights + static_cast<std::size_t>(b) * tile.sizes.block_words);
        }
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i) {
          const __m512i a = broadcast_word(pixels[i] + static_cast<std::size_t>(word) * sizeof(std::uint32_t));
#pragma GCC unroll 2
          for (int b = 0; b < kBlocks; ++b) {
            const __m512i different = _mm512_ternarylogic_epi32(a, w[b], _mm512_set1_epi32(masks[i]), kXorAnd);
            counts[i][b] += popcount(different);
          }
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    const TapRange columns = inside_taps(tile.x + i, s.stride_w, s.dilation_w, s.pad_w, s.kernel_w, s.in_w);
    const int products = (columns.end - columns.begin) * tile.column_products();
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) {
      store_dots(dots + i * kDotStride + b * kLanes, products - 2 * counts[i][b]);
    }
  }
}

template <int kBlocks>
void count_any_tile(Tile tile, std::int32_t* dots) {
  while (tile.pixels > 0) {
    const int taken = tile.pixels >= 4 ? 4 : 1;
    taken == 4 ? count_any<4, kBlocks>(tile, dots) : count_any<1, kBlocks>(tile, dots);
    tile.pixels -= taken;
    tile.x += taken;
    tile.first += static_cast<std::size_t>(taken) * tile.sizes.pixel_step;
    dots += taken * kDotStride;
  }
}

}  // namespace
}  // namespace ebnet::avx512
