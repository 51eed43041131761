// Layouts of the lookup kernels (pair_lut.h has the idea): how weights and activation codes lie in memory.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bconv/bconv.h"

namespace ebnet::pair_lut {

// What of an instruction set a layout depends on.
struct Machine {
  int lanes;  // output channels in one vector of bytes: 16 or 32
  int tile;   // pairs of pixels x blocks of channels whose sums it keeps in registers: 4 or 8
};
inline constexpr Machine kAvx2 = {32, 4}, kNeon = {16, 8}, kSimd128 = {16, 4};

inline constexpr int kTilePixels = 28;    // pixels whose dot products wait in L1 for the epilogue: whole rows of 7 and 14
inline constexpr int kMaxBlocks = 4;      // blocks of one vector of output channels computed together
inline constexpr int kWeightsOfFour = 43 * 3 * 4 * 32;  // bytes of four blocks together: half of a 32 KiB L1
inline constexpr int kCodeSlack = 32;     // codes past the end that whole-vector stores may touch
inline constexpr std::size_t kCodeBudget = 16 * 1024;  // bytes of codes in one strip: half of a 32 KiB L1

// Everything that follows from the shape. A 1x1 convolution with stride 1 and no padding does not see rows: its rows
// are run as one long line, so odd widths waste nothing.
struct Layout {
  // `most_blocks`: of output channels computed together, 1, 2 or 4.
  Layout(const ConvShape& shape, Machine machine, int most_blocks);

  bool flat;            // rows are joined into one line
  bool columns;         // three lookups are [ky][nibble][3 kx], else [ky][kx][nibble / 3][3 nibbles]
  int nibbles;          // of one group at one tap: ceil(in per group / 4)
  int total_nibbles;    // over all taps
  int pitch;            // codes from position to position: `nibbles`, rounded up where lookups take three of a tap
  int triples;          // of lookups over all taps
  int blocks;           // of one vector of output channels in one group
  int tile_blocks;      // of them computed together, where there are as many: 1, 2 or 4
  int line_pixels;      // output pixels of one line: out_w, or the longest line of a flat convolution
  int positions;        // code positions of one line
  int position_step;    // input pixels between code positions
  int pair_step;        // code positions between one pair of output pixels and the next
  int line_rows;        // output rows of one strip (1 where flat)
  int code_rows;        // input rows whose codes are kept for a strip
  std::size_t packed_block_bytes;  // weights of one block: two nibbles a byte
  std::size_t codes_bytes;
  std::size_t weights_bytes;  // tile_blocks blocks with one nibble a byte
};

namespace {

// The lane of an output channel within its block. Of 32 lanes, widening from bytes to 32 bits by interleaving takes four
// of either half of a vector at a time, and makes eight neighbours of them.
constexpr int lane_of(int channel, int lanes) {
  return lanes == 16 ? channel : channel % 8 / 4 * 16 + channel / 8 * 4 + channel % 4;
}

// The same where lanes were widened to 16 bits: [16 channels][half][8 channels][4].
constexpr int count_of(int channel, int lanes) {
  return lanes == 16 ? channel : channel / 16 * 16 + channel % 8 / 4 * 8 + channel % 16 / 8 * 4 + channel % 4;
}

}  // namespace

// Each in the file of its name.
void run_avx2(const ConvTask& task, int most_blocks);
void run_neon(const ConvTask& task, int most_blocks);
void run_simd128(const ConvTask& task, int most_blocks);

}  // namespace ebnet::pair_lut
