// Binary convolution by table lookup, kLanes output channels a vector: written once over base/vectors and compiled for
// each instruction set (avx2.cpp, neon.cpp, simd128.cpp).
//
// The idea. Four input channels of one pixel (an activation nibble a) meet four weight bits of an output channel (a
// weight nibble w) in popcount(a xor w), a number 0..4 that depends on 4 + 4 bits only. For a given a it is a table of 16
// bytes indexed by w, and one instruction (VPSHUFB, TBL, i8x16.swizzle) looks up a vector of them at once: of 16 output
// channels 64 products. No xor, no popcount.
//
// Two pixels in one lookup. The numbers need 3 bits, a byte has 8: for a pair of pixels with nibbles a, b the table row
//   T[a, b][w] = popcount(a xor w) + 16 * popcount(b xor w)
// serves both, 128 products for 16 channels. There are 17 values of a nibble: the 17th is the zero padding, which must
// add 0 to the dot product 4 n - 2 * popcount of n nibbles, so its "popcount" is 2 whatever the weight. 17 * 17 rows of
// 16 bytes are 4.6 KB and stay in L1. Activations are expanded once to byte offsets of rows ("codes"), shared by all
// output channels; a code is loaded, its row filled into a vector, and looked up by each block's weights.
//
// Sums. Three lookups fit a byte without a carry between its fields (3 * 4 = 12 < 16): s = t1 + t2 + t3. Then
//   total += s               (mod 256)
//   high  += s >> 4          (mod 256)
// for up to 63 nibbles: the sum of either pixel is then at most 252, and is known exactly once it is known mod 256. Not
// every machine shifts bytes, but 16 bits at a time: the low field of an odd byte strays into the even byte before it, 16
// times as large. With the sums p, q of the two pixels in an even byte and p', q' in the odd one (all mod 256):
//   odd byte:   high = q'             total = p' + 16 q'
//   even byte:  high = q + 16 p'      total = p + 16 q
// 16 * 16 p' is 0, so total - 16 * high is the first pixel in both of them. That gives p', and 16 p' taken off the even
// byte's high the second pixel: no mask is needed while the sums are made.
//
// The limit. Three lookups of a pair are 3 instructions, 2 additions for s, 1 for the total, and a shift and an addition
// for the high field; NEON shifts and adds in one (USRA).
//                       products   instructions     products an instruction    by xor, popcount, add
//   NEON                   384     3 + 2 + 1 + 1            54.9                      42.7
//   WebAssembly            384     3 + 2 + 1 + 2            48                        42.7
//   its code on x86        384     6 + 2 + 1 + 2            34.9                      ~13
//   AVX2                   768     3 + 2 + 1 + 2            96                        (AVX2 counts no bits)
// A browser on x86 makes two instructions of i8x16.swizzle (indices past 15 must give 0, VPSHUFB takes them modulo 16),
// and eight of i8x16.popcnt, which is a lookup itself there: so the lookup is the better of the two on every machine,
// and one design serves all. (A carry-save adder, which saves popcounts, saves nothing on NEON: two exclusive ors and a
// bit select for three vectors cost what the popcount and the addition did. With what can be made of weights and
// activations beforehand, 9 instructions become 9.)
//
// On AVX2, 8 vector operations on four pipes take 2 cycles: a ceiling of 384 products a cycle, against about 85 for
// scalar POPCNT. (Measured without any loads, 32 of these operations take 9.4 cycles and not 8, in whatever order: 327
// products a cycle.) NEON's 7 on the two pipes of a Cortex-A76 or Neoverse-N1 give 110.
//
// Loads are as scarce. With 16 registers, sums of four pairs and blocks take 8 of them, as
//   4 pairs x 1 block:  9 rows, 9 codes and 3 weights for 12 lookups of three neighbouring columns,
//   2 pairs x 2 blocks: 5 rows, 5 codes and 12 weights,
//   1 pair x 4 blocks:  3 rows, 3 codes and 12 weights for 12 lookups of a 1x1 kernel;
// with 32 of them, sums of eight take 16, as 4 x 2 and 2 x 4, and half as many loads serve a lookup. Weights of several
// blocks are operands of VPSHUFB in memory, which saves registers and instructions on x86.
//
// Channels that are not a multiple of 4: bits past the last are 0 on both sides and count as agreeing, so each tap
// inside the image adds `extra` = 4 * nibbles - channels too much, which the pixel's starting value takes off.
#pragma once
#include "bconv/ahead.h"
#include "bconv/pair_lut_epilogue.h"
#include "bconv/pair_lut_sums.h"
#include "bconv/taps.h"

namespace ebnet::pair_lut {
namespace {

// What a line of pixels needs from its strip.
struct Line {
  const ConvShape* shape;
  const Layout* layout;
  const std::uint16_t* codes;    // of the input row under kernel row 0
  std::size_t kernel_row_codes;  // codes from kernel row to kernel row
  std::size_t tap_codes;         // from tap to tap of a kernel row
  std::size_t pair_codes;        // from pair to pair
  const std::uint8_t* weights;   // [triple][block][3][lane]
};

// The sums of `pairs` pairs from `pair` of the line on, of a 3x3 kernel, for the tile's pixels from `pixel` on: kPairs
// at a time, the rest by fewer. Three lookups are the three columns of a kernel row: with stride 1 the last column's row
// of the table is the first column's of the next pair, and is loaded once. kNibbles is that of the layout. Not inlined,
// here and below, since the sums leave no registers for anything else.
template <int kPairs, int kBlocks, int kStride, int kNibbles>
__attribute__((noinline)) void lookup_columns(const Line& line, int pair, int pairs, int pixel, Counts& counts) {
  constexpr int kRowsHeld = kMaxTriples / kNibbles;  // kernel rows that byte sums can hold
  for (; pairs >= kPairs; pairs -= kPairs, pair += kPairs, pixel += 2 * kPairs) {
    const std::uint8_t* weights = line.weights;
    const std::uint16_t* codes = line.codes + static_cast<std::size_t>(pair) * line.pair_codes;
    Sums<kPairs, kBlocks> sums;
    sums.clear();
#ifdef EBNET_SIMD128  // a browser's compiler keeps sums in registers where there is one loop, hardly where there are three
#pragma clang loop unroll(disable)
#else
#pragma GCC unroll 3
#endif
    for (int ky = 0; ky < 3; ky += kRowsHeld) {
      for (int row = ky; row < 3 && row < ky + kRowsHeld; ++row, codes += line.kernel_row_codes - kNibbles) {
        for (int n = kNibbles; n > 0; --n, ++codes, weights += 3 * kBlocks * kLanes) {
          Bytes first = table_row(codes[0]);
          if constexpr (kManyRegisters) {
            Bytes rows[kPairs][3];
#pragma GCC unroll 4
            for (int p = 0; p < kPairs; ++p) {
              const std::uint16_t* at = codes + 2 * kStride * p * kNibbles;
              rows[p][0] = kStride == 1 ? first : table_row(at[0]);
              rows[p][1] = table_row(at[kNibbles]);
              rows[p][2] = first = table_row(at[2 * kNibbles]);
            }
            sums.add(rows, weights);
            continue;
          }
          const Weights<kBlocks> three(weights);
#pragma GCC unroll 4
          for (int p = 0; p < kPairs; ++p) {
            const std::uint16_t* at = codes + 2 * kStride * p * kNibbles;
            if (kStride != 1) first = table_row(at[0]);
            const Bytes third = kept(table_row(at[2 * kNibbles]));
            sums.add(p, first, table_row(at[kNibbles]), third, three);
            if (kStride == 1) first = third;
          }
        }
      }
      sums.flush(ky / kRowsHeld, ky + kRowsHeld >= 3, pixel, counts);
    }
  }
  if constexpr (kPairs > 1) {
    if (pairs > 0) lookup_columns<kPairs - 1, kBlocks, kStride, kNibbles>(line, pair, pairs, pixel, counts);
  }
}

// The same for any kernel: three lookups are three nibbles of a tap.
template <int kPairs, int kBlocks>
__attribute__((noinline)) void lookup_taps(const Line& line, int pair, int pairs, int pixel, Counts& counts) {
  for (; pairs >= kPairs; pairs -= kPairs, pair += kPairs, pixel += 2 * kPairs) {
    const std::uint8_t* weights = line.weights;
    const std::uint16_t* row_codes = line.codes + static_cast<std::size_t>(pair) * line.pair_codes;
    Sums<kPairs, kBlocks> sums;
    sums.clear();
    int flushes = 0;
    int held = 0;
    for (int ky = line.shape->kernel_h; ky > 0; --ky, row_codes += line.kernel_row_codes) {
      const std::uint16_t* tap_codes = row_codes;
      for (int kx = line.shape->kernel_w; kx > 0; --kx, tap_codes += line.tap_codes) {
        const std::uint16_t* codes = tap_codes;
        for (int left = line.layout->pitch / 3; left > 0;) {
          if (held == kMaxTriples) {
            sums.flush(flushes++, false, pixel, counts);
            held = 0;
          }
          int some = left < kMaxTriples - held ? left : kMaxTriples - held;
          held += some;
          left -= some;
          for (; some > 0; --some, codes += 3, weights += 3 * kBlocks * kLanes) {
            if constexpr (kManyRegisters) {
              Bytes rows[kPairs][3];
#pragma GCC unroll 4
              for (int p = 0; p < kPairs; ++p) {
                const std::uint16_t* at = codes + static_cast<std::size_t>(p) * line.pair_codes;
                for (int k = 0; k < 3; ++k) rows[p][k] = table_row(at[k]);
              }
              sums.add(rows, weights);
              continue;
            }
            const Weights<kBlocks> three(weights);
#pragma GCC unroll 4
            for (int p = 0; p < kPairs; ++p) {
              const std::uint16_t* at = codes + static_cast<std::size_t>(p) * line.pair_codes;
              sums.add(p, table_row(at[0]), table_row(at[1]), table_row(at[2]), three);
            }
          }
        }
      }
    }
    sums.flush(flushes, true, pixel, counts);
  }
  if constexpr (kPairs > 1) {
    if (pairs > 0) lookup_taps<kPairs - 1, kBlocks>(line, pair, pairs, pixel, counts);
  }
}

template <int kPairs, int kBlocks, int kStride>
void lookup_columns_of(const Line& line, int pair, int pairs, Counts& counts) {
  switch (line.layout->nibbles) {  // 16, 32 and 64 channels a group: the paper's networks
    case 4:
      return lookup_columns<kPairs, kBlocks, kStride, 4>(line, pair, pairs, 0, counts);
    case 8:
      return lookup_columns<kPairs, kBlocks, kStride, 8>(line, pair, pairs, 0, counts);
    default:
      return lookup_columns<kPairs, kBlocks, kStride, 16>(line, pair, pairs, 0, counts);
  }
}

template <int kPairs, int kBlocks>
void lookup(const Line& line, int pair, int pairs, Counts& counts) {
  if constexpr (kPairs > 1) {
    if (line.layout->columns) {
      return line.shape->stride_w == 1 ? lookup_columns_of<kPairs, kBlocks, 1>(line, pair, pairs, counts)
                                       : lookup_columns_of<kPairs, kBlocks, 2>(line, pair, pairs, counts);
    }
  }
  lookup_taps<kPairs, kBlocks>(line, pair, pairs, 0, counts);
}

// Sums of as many pairs and blocks are kept in registers, two for each.
constexpr int kTile = kManyRegisters ? 8 : 4;

void lookup_tile(const Line& line, int blocks, int pair, int pairs, Counts& counts) {
  if (blocks == 4) return lookup<kTile / 4, 4>(line, pair, pairs, counts);
  return blocks == 2 ? lookup<kTile / 2, 2>(line, pair, pairs, counts) : lookup<4, 1>(line, pair, pairs, counts);
}

// One strip: some output rows, or in a flat convolution some pixels as the only row.
struct Strip {
  int row, rows;       // output rows
  int pixel;           // first pixel of the line, counted from the sample's first; used where flat
  int line_pixels;
};

void expand_codes(const ConvTask& task, const Layout& layout, const Strip& strip, int group, std::uint16_t* codes) {
  const ConvShape& s = *task.shape;
  const std::size_t pixel_words = static_cast<std::size_t>(s.words_per_pixel());
  const std::uint64_t* words = task.input + static_cast<std::size_t>(group * s.words_per_group());
  if (layout.flat) {
    expand_line({words + static_cast<std::size_t>(strip.pixel) * pixel_words, pixel_words, strip.line_pixels}, layout,
                (strip.line_pixels + 1) / 2, 0, 1, codes);
    return;
  }
  const std::size_t row_codes = static_cast<std::size_t>(layout.positions) * static_cast<std::size_t>(layout.pitch);
  const int rows = (strip.rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  for (int r = 0; r < rows; ++r) {
    const int y = strip.row * s.stride_h - s.pad_h + r;
    const bool inside = y >= 0 && y < s.in_h;
    const std::size_t first_pixel = inside ? static_cast<std::size_t>(y) * static_cast<std::size_t>(s.in_w) : 0;
    expand_line({words + first_pixel * pixel_words, pixel_words, inside ? s.in_w : 0}, layout, layout.positions,
                s.pad_w, s.stride_w, codes + static_cast<std::size_t>(r) * row_codes);
  }
}

// What the dot products of `pixels` pixels from (y, x) on would be if no bit differed: 4 for each nibble, less what
// bits past the last channel wrongly add; and 2^23, as the epilogue wants them.
void set_starts(const ConvShape& s, const Layout& layout, int y, int x, int pixels, float* starts) {
  const int all = 4 * layout.total_nibbles;
  for (int i = 0; i < kTilePixels; ++i) starts[i] = kTwoTo23 + static_cast<float>(all);
  const int extra = 4 * layout.nibbles - s.in_per_group();
  if (extra == 0) return;
  const TapRange rows = inside_taps(y, s.stride_h, s.dilation_h, s.pad_h, s.kernel_h, s.in_h);
  for (int i = 0; i < pixels; ++i) {
    const int column = layout.flat ? 0 : x + i;  // a flat convolution has its only tap everywhere
    const TapRange columns = inside_taps(column, s.stride_w, s.dilation_w, s.pad_w, s.kernel_w, s.in_w);
    const int taps = (rows.end - rows.begin) * (columns.end - columns.begin);
    starts[i] = kTwoTo23 + static_cast<float>(all - extra * taps);
  }
}

// Pixels [x, x + pixels) of a line through lookup and epilogue. `pixel` and `row` are those of x = 0.
void run_tile(const ConvTask& task, const Line& line, bool whole, int x, int pixels, int pixel, int row,
              const ChannelBlock* blocks, int block_count) {
  const ConvShape& s = *line.shape;
  Counts counts;
  float starts[kTilePixels];
  set_starts(s, *line.layout, row, x, pixels, starts);
  for (int b = 0; b < block_count; ++b) {
    prefetch_tile(*task.epilogue, static_cast<std::size_t>(pixel + x), pixels, blocks[b].channel, blocks[b].channels);
  }
  lookup_tile(line, block_count, x / 2, (pixels + 1) / 2, counts);
  const int out_w = s.out_w();
  const auto finish = [&](int first, int count, int in_row) {
    for (int b = 0; b < block_count; ++b) {
      finish_tile(s, *task.epilogue, whole, blocks[b],
                  {counts.twice[b][first], starts + first, static_cast<std::size_t>(pixel + x + first),
                   static_cast<std::size_t>(in_row), count, pixel + x + first == in_row * out_w});
    }
  };
  if (!line.layout->flat) return finish(0, pixels, row);
  for (int first = 0, count = 0; first < pixels; first += count) {  // a flat line crosses rows
    const int in_row = (pixel + x + first) / out_w;
    const int left_in_row = (in_row + 1) * out_w - (pixel + x + first);
    count = left_in_row < pixels - first ? left_in_row : pixels - first;
    finish(first, count, in_row);
  }
}

void run_strip(const ConvTask& task, const Layout& layout, bool whole, const Strip& strip, Ahead& ahead) {
  const ConvShape& s = *task.shape;
  std::uint16_t* codes = static_cast<std::uint16_t*>(task.scratch);
  std::uint8_t* weights = static_cast<std::uint8_t*>(task.scratch) + layout.codes_bytes;
  const std::size_t row_codes = static_cast<std::size_t>(layout.positions) * static_cast<std::size_t>(layout.pitch);
  for (int group = 0; group < s.groups; ++group) {
    expand_codes(task, layout, strip, group, codes);
    for (int block = 0, blocks = 0; block < layout.blocks; block += blocks) {
      blocks = layout.tile_blocks;
      while (blocks > layout.blocks - block) blocks /= 2;
      const std::uint8_t* packed = task.weights->data.data() +
                                   static_cast<std::size_t>(group * layout.blocks + block) * layout.packed_block_bytes;
      expand_weights(packed, layout, blocks, weights);
      ChannelBlock channels[kMaxBlocks];
      for (int b = 0; b < blocks; ++b) {
        const int first = (block + b) * kLanes;
        const int left = s.out_per_group() - first;
        channels[b] = ChannelBlock(s, *task.epilogue, group * s.out_per_group() + first, left < kLanes ? left : kLanes);
      }
      for (int r = 0; r < strip.rows; ++r) {
        const Line line = {&s,
                           &layout,
                           codes + static_cast<std::size_t>(r * s.stride_h) * row_codes,
                           static_cast<std::size_t>(s.dilation_h) * row_codes,
                           static_cast<std::size_t>(s.dilation_w * layout.pitch),
                           static_cast<std::size_t>(layout.pair_step * layout.pitch),
                           weights};
        const int pixel = layout.flat ? strip.pixel : (strip.row + r) * s.out_w();
        for (int x = 0; x < strip.line_pixels; x += kTilePixels) {
          const int pixels = strip.line_pixels - x < kTilePixels ? strip.line_pixels - x : kTilePixels;
          ahead.some();
          run_tile(task, line, whole, x, pixels, pixel, strip.row + r, channels, blocks);
        }
      }
    }
  }
}

void run(const ConvTask& task, int most_blocks) {
  const ConvShape& s = *task.shape;
  const Layout layout(s, {kLanes, kTile}, most_blocks);
  const bool whole = is_whole(s, *task.epilogue);
  clear_rows(s, *task.epilogue, whole, task.row_begin, task.row_end);
  const int pixels = (task.row_end - task.row_begin) * s.out_w();
  const int tile_pixels = layout.flat || s.out_w() > kTilePixels ? kTilePixels : s.out_w();
  Ahead ahead(task, pixels / tile_pixels * s.groups * layout.blocks / layout.tile_blocks);
  if (layout.flat) {
    const int end = task.row_end * s.out_w();
    for (int pixel = task.row_begin * s.out_w(); pixel < end; pixel += layout.line_pixels) {
      const int some = end - pixel < layout.line_pixels ? end - pixel : layout.line_pixels;
      run_strip(task, layout, whole, {pixel / s.out_w(), 1, pixel, some}, ahead);
    }
    return;
  }
  for (int row = task.row_begin; row < task.row_end; row += layout.line_rows) {
    const int rows = task.row_end - row < layout.line_rows ? task.row_end - row : layout.line_rows;
    run_strip(task, layout, whole, {row, rows, 0, s.out_w()}, ahead);
  }
}

}  // namespace
}  // namespace ebnet::pair_lut
