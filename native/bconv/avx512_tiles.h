// The way of the AVX-512 kernels through a convolution. A tile is a few neighbouring pixels of an output row and one or
// two blocks of 16 output channels; a kernel only has to count its differing bits.
#pragma once
#include "bconv/ahead.h"
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
        row_words(static_cast<std::size_t>(s.kernel_w * words) * kLanes),
        block_words(static_cast<std::size_t>(s.kernel_h) * row_words),
        pixel_bytes(static_cast<std::size_t>(s.words_per_pixel()) * sizeof(std::uint64_t)),
        pixel_step(static_cast<std::size_t>(s.stride_w) * pixel_bytes),
        row_step(static_cast<std::size_t>(s.dilation_h) * static_cast<std::size_t>(s.in_w) * pixel_bytes) {}

  int inputs;               // of a group
  int words;                // of 32 of them
  std::size_t row_words;    // weights of one block from kernel row to kernel row
  std::size_t block_words;  // and from block to block
  std::size_t pixel_bytes;  // from pixel to pixel of the input
  std::size_t pixel_step;   // from the input of one output pixel to that of the next
  std::size_t row_step;     // from the input of one kernel row to that of the next
};

struct Tile {
  const ConvShape& shape;
  const Sizes& sizes;
  const std::uint8_t* input = nullptr;     // the group's words in the sample's first pixel
  const std::uint8_t* first = nullptr;     // those that meet the first kernel row inside, or where they would be
  const std::uint32_t* weights = nullptr;  // of the first block, from the first kernel row inside
  int rows = 0;                            // kernel rows inside the image
  int x = 0;                               // output column of the first pixel
  int pixels = 0, blocks = 0;

  int first_column() const { return x * shape.stride_w - shape.pad_w; }
  int last_column() const {
    return (x + pixels - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w - shape.pad_w;
  }
  // Whether a column of the kernel lies left or right of the image for one of the pixels.
  bool left() const { return first_column() < 0; }
  bool right() const { return last_column() >= shape.in_w; }
  // Products of one pixel and output channel with one column of the kernel.
  int column_products() const { return rows * sizes.inputs; }
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

inline void store_dots(std::int32_t* dots, Lanes lanes) { std::memcpy(dots, &lanes, sizeof lanes); }

// Plain tiles count down from half of the products, and give twice what is left: where products are odd, by one too few.
inline void add_odd_products(const Tile& tile, std::int32_t* dots) {
  const ConvShape& s = tile.shape;
  if (tile.column_products() % 2 == 0) return;
  for (int i = 0; i < tile.pixels; ++i) {
    const TapRange columns = inside_taps(tile.x + i, s.stride_w, s.dilation_w, s.pad_w, s.kernel_w, s.in_w);
    const std::int32_t odd = (columns.end - columns.begin) % 2;
    for (int lane = 0; lane < tile.blocks * kLanes; ++lane) dots[i * kDotStride + lane] += odd;
  }
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
  const EpilogueSteps steps(s, *task.epilogue);
  Tile tile{s, sizes};
  tile.pixels = tile_pixels(out_w);
  begin_rows(s, *task.epilogue, task.row_begin, task.row_end);
  const int row_tiles = (out_w + tile.pixels - 1) / tile.pixels;
  const int all_tiles = s.groups * ((group_blocks + most_blocks - 1) / most_blocks) * row_tiles;  // of one row
  Ahead ahead(task, (task.row_end - task.row_begin) * all_tiles);
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
      const std::uint32_t* weights =
          task.weights->data.as<std::uint32_t>() + static_cast<std::size_t>(first) * sizes.block_words;
      const int channel = group * s.out_per_group() + block * kLanes;
      const int channels = smaller(tile.blocks * kLanes, s.out_per_group() - block * kLanes);
      const ChannelBlocks channel_blocks(*task.epilogue, channel, channels);
      for (int y = row; y < row + strip; ++y) {
        const TapRange inside = inside_taps(y, s.stride_h, s.dilation_h, s.pad_h, s.kernel_h, s.in_h);
        const int in_y = y * s.stride_h + inside.begin * s.dilation_h - s.pad_h;
        tile.rows = inside.end - inside.begin;
        tile.weights = weights + static_cast<std::size_t>(inside.begin) * sizes.row_words;
        for (int x = 0; x < out_w; x += tile.pixels) {
          tile.x = smaller(x, out_w - tile.pixels);
          tile.first = tile.input + (static_cast<std::ptrdiff_t>(in_y) * s.in_w + tile.first_column()) *
                                        static_cast<std::ptrdiff_t>(sizes.pixel_bytes);
          const int fresh = tile.x + tile.pixels - x;
          const std::size_t pixel = static_cast<std::size_t>(y) * static_cast<std::size_t>(out_w) +
                                    static_cast<std::size_t>(x);
          prefetch_tile(*task.epilogue, pixel, fresh, channel_blocks);
          ahead.some();
          count(static_cast<const Tile&>(tile), dots);
          const std::int32_t* from = dots + (tile.pixels - fresh) * kDotStride;
          finish_tile(s, *task.epilogue, steps, channel_blocks,
                      {from, kDotStride, pixel, static_cast<std::size_t>(y), fresh});
        }
      }
    }
  }
}

}  // namespace
}  // namespace ebnet::avx512
