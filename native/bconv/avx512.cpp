// Binary convolution with VPOPCNTD, 16 output channels a vector.
//
// A vector holds the same 32 input channels of 16 output channels' weights; the activation word of a pixel is broadcast
// against it. Per 512 products: one xor, one popcount, one add, i.e. 3 operations on the two 512-bit ports of which one
// counts bits. Counts stay in 32-bit lanes, one per output channel, so nothing is ever summed across lanes, and a tile
// of 8 pixels x 2 blocks keeps its 16 counts in registers while each weight vector is used 8 times. (Lanes of 64 bits
// and VPOPCNTQ take as many operations for as many products, and more to store the counts.)
//
// Plain tiles, those of all the networks' layers: kernel of one or three columns and 7 or 8 pixels, known to the
// compiler, so that a step (one kernel row, one word) is a straight line of vector operations. Padding costs nothing:
// rows outside the image are skipped, and of columns only the first of a row's first pixel and the last of its last one
// can lie outside, which the code for such tiles leaves out. dot = 2 * (n / 2 - popcount), where n counts the products
// inside, so the counts start at n / 2 and go down. (Where n is odd, one is added.)
#include "bconv/avx512_any_shape.h"
#include "bconv/avx512_tiles.h"

namespace ebnet::avx512 {
namespace {

// The dot products of a plain tile; kLeft, kRight: the first pixel's first or the last one's last column is outside.
// Not inlined: beside other code there are too few registers for the counts.
template <int kBlocks, int kPixels, int kColumns, bool kLeft, bool kRight>
__attribute__((noinline)) void count_plain(const Tile& tile, std::int32_t* dots) {
  const Sizes sizes = tile.sizes;  // a copy, for the compiler to hold in registers
  const std::size_t tap_words = sizes.row_words / kColumns;
  Lanes halves[kPixels][kBlocks];
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    const int outside = (kLeft && i == 0 ? 1 : 0) + (kRight && i == kPixels - 1 ? 1 : 0);
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) halves[i][b] = (kColumns - outside) * tile.column_products() / 2 + Lanes{};
  }
  for (int ky = 0; ky < tile.rows; ++ky) {
    const std::uint8_t* row = tile.first + static_cast<std::size_t>(ky) * sizes.row_step;
    const std::uint32_t* weights = tile.weights + static_cast<std::size_t>(ky) * sizes.row_words;
    for (int word = 0; word < sizes.words; ++word, row += sizeof(std::uint32_t), weights += kLanes) {
      __m512i w[kColumns][kBlocks];
#pragma GCC unroll 3
      for (int kx = 0; kx < kColumns; ++kx) {
        const std::uint32_t* tap = weights + static_cast<std::size_t>(kx) * tap_words;
#pragma GCC unroll 2
        for (int b = 0; b < kBlocks; ++b, tap += sizes.block_words) w[kx][b] = _mm512_loadu_si512(tap);
      }
      const std::uint8_t* pixel = row;
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i, pixel += sizes.pixel_step) {
#pragma GCC unroll 3
        for (int kx = 0; kx < kColumns; ++kx) {
          if ((kLeft && i == 0 && kx == 0) || (kRight && i == kPixels - 1 && kx == kColumns - 1)) continue;
          const __m512i a = broadcast_word(pixel + static_cast<std::size_t>(kx) * sizes.pixel_bytes);
#pragma GCC unroll 2
          for (int b = 0; b < kBlocks; ++b) halves[i][b] -= differing(a, w[kx][b]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) store_dots(dots + i * kDotStride + b * kLanes, halves[i][b] + halves[i][b]);
  }
}

template <int kBlocks, int kPixels>
void count_plain_tile(const Tile& tile, std::int32_t* dots) {
  if (tile.shape.kernel_w == 1) return count_plain<kBlocks, kPixels, 1, false, false>(tile, dots);
  if (tile.left()) {
    return tile.right() ? count_plain<kBlocks, kPixels, 3, true, true>(tile, dots)
                        : count_plain<kBlocks, kPixels, 3, true, false>(tile, dots);
  }
  return tile.right() ? count_plain<kBlocks, kPixels, 3, false, true>(tile, dots)
                      : count_plain<kBlocks, kPixels, 3, false, false>(tile, dots);
}

template <int kBlocks>
void count_tile(const Tile& tile, bool plain, std::int32_t* dots) {
  if (!plain) return count_any_tile<kBlocks>(tile, dots);
  tile.pixels == 7 ? count_plain_tile<kBlocks, 7>(tile, dots) : count_plain_tile<kBlocks, 8>(tile, dots);
  add_odd_products(tile, dots);
}

}  // namespace

void run_popcount(const ConvTask& task) {
  const bool plain = has_plain_tiles(*task.shape);
  run_tiles(task, kMaxBlocks, [plain](const Tile& tile, std::int32_t* dots) {
    tile.blocks == 1 ? count_tile<1>(tile, plain, dots) : count_tile<2>(tile, plain, dots);
  });
}

}  // namespace ebnet::avx512
