// Binary convolution with VPOPCNTD, 16 output channels a vector.
//
// A vector holds the same 32 input channels of 16 output channels' weights; the activation word of a pixel is broadcast
// against it. Per 512 products: one xor, one popcount, one add, i.e. 3 operations on the two 512-bit ports of which one
// counts bits. Counts stay in 32-bit lanes, one per output channel, so nothing is ever summed across lanes, and a tile
// of 8 pixels x 2 blocks keeps its 16 counts in registers while each weight vector is used 8 times.
//
// Padding: (a xor w) and m, in one VPTERNLOG, where m is 0 for a tap outside the image, so that it counts nothing; the
// pixel's n in dot = n - 2 * popcount counts the taps inside. Rows outside are skipped, and tiles that lie inside
// horizontally need no masks at all.
#include "bconv/avx512_layout.h"
#include "bconv/epilogue_avx512.h"
#include "bconv/taps.h"

namespace ebnet::avx512 {
namespace {

// xor of the first two, and-ed with the third: truth table over (a, b, c) with a the high index bit.
constexpr int kXorAnd = 0x28;

struct Tile {
  const ConvShape* shape;
  const std::uint8_t* input;     // the group's words in the sample
  std::size_t pixel_bytes;       // from pixel to pixel
  const std::uint32_t* weights;  // of the first block
  std::size_t block_words;       // from block to block
  int y, x;                      // output position of the first pixel
  TapRange rows;
};

// 32 channels of a pixel, in all lanes.
inline __m512i broadcast_word(const std::uint8_t* pixel, int word) {
  std::int32_t bits;
  std::memcpy(&bits, pixel + static_cast<std::size_t>(word) * sizeof bits, sizeof bits);
  return _mm512_set1_epi32(bits);
}

// popcount(a xor w) over all taps inside the image for kPixels pixels and kBlocks blocks; kMasked where a tap of one of
// the pixels may lie left or right of the image.
template <int kPixels, int kBlocks, bool kMasked>
void count(const Tile& tile, std::int32_t* differing) {
  const ConvShape& s = *tile.shape;
  const int words = words32(s);
  __m512i counts[kPixels][kBlocks];
  for (int i = 0; i < kPixels; ++i) {
    for (int b = 0; b < kBlocks; ++b) counts[i][b] = _mm512_setzero_si512();
  }
  for (int ky = tile.rows.begin; ky < tile.rows.end; ++ky) {
    const std::size_t in_y = static_cast<std::size_t>(tile.y * s.stride_h + ky * s.dilation_h - s.pad_h);
    const std::uint8_t* row = tile.input + in_y * static_cast<std::size_t>(s.in_w) * tile.pixel_bytes;
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      const std::uint8_t* pixels[kPixels];
      std::int32_t masks[kPixels];
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i) {
        const int in_x = (tile.x + i) * s.stride_w + kx * s.dilation_w - s.pad_w;
        const bool inside = !kMasked || (in_x >= 0 && in_x < s.in_w);
        masks[i] = inside ? -1 : 0;
        pixels[i] = row + static_cast<std::size_t>(inside ? in_x : 0) * tile.pixel_bytes;
      }
      const std::uint32_t* weights = tile.weights + static_cast<std::size_t>((ky * s.kernel_w + kx) * words) * kLanes;
      for (int word = 0; word < words; ++word, weights += kLanes) {
        __m512i w[kBlocks];
#pragma GCC unroll 2
        for (int b = 0; b < kBlocks; ++b) w[b] = _mm512_loadu_si512(weights + static_cast<std::size_t>(b) * tile.block_words);
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i) {
          const __m512i a = broadcast_word(pixels[i], word);
#pragma GCC unroll 2
          for (int b = 0; b < kBlocks; ++b) {
            const __m512i different =
                kMasked ? _mm512_ternarylogic_epi32(a, w[b], _mm512_set1_epi32(masks[i]), kXorAnd)
                        : _mm512_xor_si512(a, w[b]);
            counts[i][b] = _mm512_add_epi32(counts[i][b], _mm512_popcnt_epi32(different));
          }
        }
      }
    }
  }
  for (int i = 0; i < kPixels; ++i) {
    for (int b = 0; b < kBlocks; ++b) {
      _mm512_storeu_si512(differing + (i * kMaxBlocks + b) * kLanes, counts[i][b]);
    }
  }
}

template <int kBlocks, bool kMasked>
void count_tile(Tile tile, int pixels, std::int32_t* differing) {
  constexpr int kPitch = kMaxBlocks * kLanes;
  if (pixels == 8) return count<8, kBlocks, kMasked>(tile, differing);
  if (pixels == 7) return count<7, kBlocks, kMasked>(tile, differing);
  for (; pixels >= 4; pixels -= 4, tile.x += 4, differing += 4 * kPitch) count<4, kBlocks, kMasked>(tile, differing);
  for (; pixels > 0; --pixels, ++tile.x, differing += kPitch) count<1, kBlocks, kMasked>(tile, differing);
}

// Dot products and epilogue of one tile; `group_channels` output channels from `channel`.
void run_tile(const ConvTask& task, const Tile& tile, int pixels, int channel, int group_channels) {
  const ConvShape& s = *tile.shape;
  alignas(64) std::int32_t dots[kTilePixels * kMaxBlocks * kLanes];
  const int first = tile.x * s.stride_w - s.pad_w;
  const int last = (tile.x + pixels - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w - s.pad_w;
  const bool masked = first < 0 || last >= s.in_w;
  const int tile_blocks = group_channels > kLanes ? 2 : 1;
  if (tile_blocks == 2) {
    masked ? count_tile<2, true>(tile, pixels, dots) : count_tile<2, false>(tile, pixels, dots);
  } else {
    masked ? count_tile<1, true>(tile, pixels, dots) : count_tile<1, false>(tile, pixels, dots);
  }
  for (int i = 0; i < pixels; ++i) {
    const TapRange columns = inside_taps(tile.x + i, s.stride_w, s.dilation_w, s.pad_w, s.kernel_w, s.in_w);
    const int taps = (tile.rows.end - tile.rows.begin) * (columns.end - columns.begin);
    const __m512i products = _mm512_set1_epi32(taps * s.in_per_group());
    for (int b = 0; b < tile_blocks; ++b) {
      std::int32_t* at = dots + (i * kMaxBlocks + b) * kLanes;
      _mm512_storeu_si512(at, _mm512_sub_epi32(products, _mm512_slli_epi32(_mm512_loadu_si512(at), 1)));
    }
  }
  const std::size_t pixel = static_cast<std::size_t>(tile.y) * static_cast<std::size_t>(s.out_w()) +
                            static_cast<std::size_t>(tile.x);
  for (int b = 0; b < tile_blocks; ++b) {
    const int left = group_channels - b * kLanes;
    finish_tile(s, *task.epilogue,
                {dots + b * kLanes, kMaxBlocks * kLanes, pixel, static_cast<std::size_t>(tile.y), pixels,
                 channel + b * kLanes, left < kLanes ? left : kLanes});
  }
}

}  // namespace

void run(const ConvTask& task) {
  const ConvShape& s = *task.shape;
  const int group_blocks = blocks(s);
  const int out_w = s.out_w();
  // Widths like 14 and 7 split evenly into tiles of 7, others into tiles of 8.
  const int tile_pixels = out_w % 7 == 0 && out_w % 8 != 0 ? 7 : kTilePixels;
  Tile tile;
  tile.shape = &s;
  tile.pixel_bytes = static_cast<std::size_t>(s.words_per_pixel()) * sizeof(std::uint64_t);
  tile.block_words = static_cast<std::size_t>(s.taps() * words32(s)) * kLanes;
  begin_rows(s, *task.epilogue, task.row_begin, task.row_end);
  for (int group = 0; group < s.groups; ++group) {
    tile.input = reinterpret_cast<const std::uint8_t*>(task.input + static_cast<std::size_t>(group * s.words_per_group()));
    for (int block = 0; block < group_blocks; block += kMaxBlocks) {
      tile.weights = task.weights->data.as<std::uint32_t>() +
                     static_cast<std::size_t>(group * group_blocks + block) * tile.block_words;
      const int left = s.out_per_group() - block * kLanes;
      const int channels = left < kMaxBlocks * kLanes ? left : kMaxBlocks * kLanes;
      const int channel = group * s.out_per_group() + block * kLanes;
      for (tile.y = task.row_begin; tile.y < task.row_end; ++tile.y) {
        tile.rows = inside_taps(tile.y, s.stride_h, s.dilation_h, s.pad_h, s.kernel_h, s.in_h);
        for (tile.x = 0; tile.x < out_w; tile.x += tile_pixels) {
          run_tile(task, tile, out_w - tile.x < tile_pixels ? out_w - tile.x : tile_pixels, channel, channels);
        }
      }
    }
  }
}

}  // namespace ebnet::avx512
