// The way of the AVX-512 kernels through a convolution. A tile is a few neighbouring pixels of an output row and one or
// two blocks of 16 output channels; a kernel only has to count its differing bits.
#pragma once
#include "bconv/avx512_layout.h"
#include "bconv/epilogue_avx512.h"
#include "bconv/taps.h"

namespace ebnet::avx512 {
namespace {

constexpr int kDotStride = kMaxBlocks * kLanes;  // from pixel to pixel in a tile of dot products

// What of a shape the inner loops need: found once, divisions are slow.
struct Sizes {
  explicit Sizes(const ConvShape& s)
      : inputs(s.in_per_group()),
        words(words32(s)),
        block_words(avx512::block_words(s)),
        pixel_bytes(static_cast<std::size_t>(s.words_per_pixel()) * sizeof(std::uint64_t)),
        pixel_step(static_cast<std::size_t>(s.stride_w) * pixel_bytes) {}

  int inputs;               // of a group
  int words;                // of 32 of them
  std::size_t block_words;  // from one block's weights to the next
  std::size_t pixel_bytes;  // from pixel to pixel of the input
  std::size_t pixel_step;   // from the input of one output pixel to that of the next
};

struct Tile {
  const ConvShape& shape;
  const Sizes& sizes;
  const std::uint8_t* input = nullptr;     // the group's words in the sample's first pixel
  const std::uint32_t* weights = nullptr;  // of the first block
  TapRange rows = {0, 0};                  // kernel rows inside the image
  int y = 0, x = 0;                        // output position of the first pixel
  int pixels = 0, blocks = 0;

  int first_column() const { return x * shape.stride_w - shape.pad_w; }
  int last_column() const {
    return (x + pixels - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w - shape.pad_w;
  }
  // Whether a column of the kernel lies left or right of the image for one of the pixels.
  bool left() const { return first_column() < 0; }
  bool right() const { return last_column() >= shape.in_w; }
  // Bytes from `input` to the first pixel's first column in a kernel row; where that lies left of the image, to where
  // it would be.
  std::ptrdiff_t first_byte(int ky) const {
    const int in_y = y * shape.stride_h + ky * shape.dilation_h - shape.pad_h;
    return (static_cast<std::ptrdiff_t>(in_y) * shape.in_w + first_column()) *
           static_cast<std::ptrdiff_t>(sizes.pixel_bytes);
  }
  // Products of one pixel and output channel with one column of the kernel.
  int column_products() const { return (rows.end - rows.begin) * sizes.inputs; }
};

// 32 channels of a pixel, in all lanes.
inline __m512i broadcast_word(const std::uint8_t* word) {
  std::int32_t bits;
  std::memcpy(&bits, word, sizeof bits);
  return _mm512_set1_epi32(bits);
}

// A 32-bit count or dot product of each of a block's output channels.
using Lanes = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

inline Lanes popcount(__m512i words) { return reinterpret_cast<Lanes>(_mm512_popcnt_epi32(words)); }

// The number of bits in which an activation word and the weights differ.
inline Lanes differing(__m512i activations, __m512i weights) {
  return popcount(_mm512_xor_si512(activations, weights));
}

inline void store_dots(std::int32_t* dots, int products, Lanes counts) {
  const Lanes lanes = products - (counts + counts);
  std::memcpy(dots, &lanes, sizeof lanes);
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
  const Sizes sizes(s);
  Tile tile{s, sizes};
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
      tile.weights = task.weights->data.as<std::uint32_t>() + static_cast<std::size_t>(first) * sizes.block_words;
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
