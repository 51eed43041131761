// Layouts of the AVX-512 kernels (avx512.cpp and avx512_carry_save.cpp have the ideas).
#pragma once
#include <cstddef>
#include <cstdint>

#include "bconv/bconv.h"

namespace ebnet::avx512 {
namespace {

inline constexpr int kLanes = 16;      // output channels in one vector of 32-bit counts
inline constexpr int kMaxBlocks = 2;   // blocks of kLanes output channels computed together
inline constexpr int kTilePixels = 8;  // pixels computed together, or 7

// 32-bit words of one group at one tap.
inline int words32(const ConvShape& shape) { return (shape.in_per_group() + 31) / 32; }
// Blocks of kLanes output channels in one group.
inline int blocks(const ConvShape& shape) { return (shape.out_per_group() + kLanes - 1) / kLanes; }
// 32-bit words of one block's weights: a word for every lane, tap and 32 inputs.
inline std::size_t block_words(const ConvShape& shape) {
  return static_cast<std::size_t>(shape.taps() * words32(shape)) * kLanes;
}
// Pixels of a tile in a row of `width`: widths like 14 and 7 split evenly into tiles of 7, others into tiles of 8.
inline int tile_pixels(int width) {
  const int pixels = width % 7 == 0 && width % 8 != 0 ? 7 : kTilePixels;
  return width < pixels ? width : pixels;
}
// Whether all tiles have 7 or 8 pixels and at most the first column of a row's first pixel and the last column of its
// last one lie outside the image, in a kernel of one or three columns.
inline bool has_plain_tiles(const ConvShape& shape) {
  return tile_pixels(shape.out_w()) >= 7 &&
         (shape.kernel_w == 1 ? shape.pad_w == 0 : shape.kernel_w == 3 && shape.dilation_w == 1 && shape.pad_w <= 1);
}

// Three words for a carry-save step lie `words` apart in one pixel (kernel of one column) or, of one word each, in
// three neighbouring pixels (kernel of three columns).
struct Triples {
  explicit Triples(const ConvShape& shape)
      : per_row(shape.kernel_w == 3 ? words32(shape) : words32(shape) / 3),
        rest(shape.kernel_w == 3 ? 0 : words32(shape) % 3),
        distance(shape.kernel_w == 3 ? 2 * shape.words_per_pixel() : per_row) {}

  int per_row;   // in a kernel row
  int rest;      // words of a kernel row that belong to none
  int distance;  // 32-bit words from one of the three activation words to the next
};

}  // namespace

void run_popcount(const ConvTask& task);
void run_carry_save(const ConvTask& task);

}  // namespace ebnet::avx512
