// The way of the AVX-512 kernels through a convolution. A tile is a few neighbouring pixels of an output row and one or
// two blocks of 16 output channels; a kernel only has to count its differing bits.
#pragma once
#include "bconv/avx512_layout.h"
#include "bconv/epilogue_avx512.h"
#include "bconv/taps.h"

namespace ebnet::avx512 {
namespace {

constexpr int kDotStride = kMaxBlocks * kLanes;  // from pixel to pixel in a tile of dot products

struct Tile {
  const ConvShape* shape;
  const std::uint8_t* input;     // the group's words in the sample's first pixel
  std::size_t pixel_bytes;       // from pixel to pixel
  const std::uint32_t* weights;  // of the first block
  TapRange rows;                 // kernel rows inside the image
  int y, x;                      // output position of the first pixel
  int pixels, blocks;

  int first_column() const { return x * shape->stride_w - shape->pad_w; }
  int last_column() const {
    return (x + pixels - 1) * shape->stride_w + (shape->kernel_w - 1) * shape->dilation_w - shape->pad_w;
  }
  // Whether a column of the kernel lies left or right of the image for one of the pixels.
  bool left() const { return first_column() < 0; }
  bool right() const { return last_column() >= shape->in_w; }
  // Bytes from `input` to the first pixel's first column in a kernel row; where that lies left of the image, the bytes
  // to where it would be.
  std::ptrdiff_t first_byte(int ky) const {
    const int in_y = y * shape->stride_h + ky * shape->dilation_h - shape->pad_h;
    return (static_cast<std::ptrdiff_t>(in_y) * shape->in_w + first_column()) *
           static_cast<std::ptrdiff_t>(pixel_bytes);
  }
  // Products of one pixel with `columns` columns of the kernel inside the image, in all lanes.
  __m512i products(int columns) const {
    return _mm512_set1_epi32((rows.end - rows.begin) * columns * shape->in_per_group());
  }
};

// 32 channels of a pixel, in all lanes.
inline __m512i broadcast_word(const std::uint8_t* word) {
  std::int32_t bits;
  std::memcpy(&bits, word, sizeof bits);
  return _mm512_set1_epi32(bits);
}

// counts += the bits in which an activation word and the weights differ.
inline void count_differing(__m512i& counts, __m512i activations, __m512i weights) {
  counts = _mm512_add_epi32(counts, _mm512_popcnt_epi32(_mm512_xor_si512(activations, weights)));
}

inline void store_dots(std::int32_t* dots, __m512i products, __m512i differing) {
  _mm512_storeu_si512(dots, _mm512_sub_epi32(products, _mm512_add_epi32(differing, differing)));
}

inline int smaller(int a, int b) { return a < b ? a : b; }

// Dot products and epilogue of all tiles, at most `most_blocks` blocks each. count(tile, dots) writes the tile's dot
// products [pixel][kDotStride]. Where a row's last tile would be too short it starts further left, and what is there
// already is not finished again: all tiles have tile_pixels(out_w).
template <class Count>
void run_tiles(const ConvTask& task, int most_blocks, const Count& count) {
  constexpr std::size_t kWeightsInL1 = 24 * 1024;  // bytes that stay there beside tiles, activations and stream
  const ConvShape& s = *task.shape;
  const int group_blocks = blocks(s);
  const int out_w = s.out_w();
  alignas(64) std::int32_t dots[kTilePixels * kDotStride];
  Tile tile;
  tile.shape = &s;
  tile.pixel_bytes = static_cast<std::size_t>(s.words_per_pixel()) * sizeof(std::uint64_t);
  tile.pixels = tile_pixels(out_w);
  begin_rows(s, *task.epilogue, task.row_begin, task.row_end);
  // Few weights: all channels of a row, then the next row, so that skip and stream are read in order. Many: all rows
  // with two blocks of weights, then the next blocks.
  const bool few = task.weights->data.size() <= kWeightsInL1;
  const int strip = few ? 1 : task.row_end - task.row_begin;
  for (int row = task.row_begin; row < task.row_end; row += strip) {
    for (int first = 0; first < s.groups * group_blocks; first += tile.blocks) {
      const int group = first / group_blocks, block = first % group_blocks;
      tile.blocks = smaller(most_blocks, group_blocks - block);
      tile.input =
          reinterpret_cast<const std::uint8_t*>(task.input + static_cast<std::size_t>(group * s.words_per_group()));
      tile.weights = task.weights->data.as<std::uint32_t>() + static_cast<std::size_t>(first) * block_words(s);
      const int channel = group * s.out_per_group() + block * kLanes;
      const int channels = smaller(tile.blocks * kLanes, s.out_per_group() - block * kLanes);
      for (tile.y = row; tile.y < row + strip; ++tile.y) {
        tile.rows = inside_taps(tile.y, s.stride_h, s.dilation_h, s.pad_h, s.kernel_h, s.in_h);
        for (int x = 0; x < out_w; x += tile.pixels) {
          tile.x = smaller(x, out_w - tile.pixels);
          const int fresh = tile.x + tile.pixels - x;
          const std::size_t pixel = static_cast<std::size_t>(tile.y) * static_cast<std::size_t>(out_w) +
                                    static_cast<std::size_t>(x);
          prefetch_tile(*task.epilogue, pixel, fresh, channel, channels);
          count(static_cast<const Tile&>(tile), dots);
          const std::int32_t* from = dots + (tile.pixels - fresh) * kDotStride;
          for (int done = 0; done < channels; done += kLanes) {
            finish_tile(s, *task.epilogue,
                        {from + done, kDotStride, pixel, static_cast<std::size_t>(tile.y), fresh, channel + done,
                         smaller(kLanes, channels - done)});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ebnet::avx512
