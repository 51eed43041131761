// Binary convolution by table lookup, 32 output channels a vector.
//
// The idea. Four input channels of one pixel (an activation nibble a) meet four weight bits of an output channel (a
// weight nibble w) in popcount(a xor w), a number 0..4 that depends on 4 + 4 bits only. For a given a it is a table of 16
// bytes indexed by w, and VPSHUFB looks up 32 of them at once: 32 output channels, 128 products. No xor, no popcount.
//
// Two pixels in one lookup. The numbers need 3 bits, a byte has 8: for a pair of pixels with nibbles a, b the table row
//   T[a, b][w] = popcount(a xor w) + 16 * popcount(b xor w)
// serves both, 256 products a lookup. There are 17 values of a nibble: the 17th is the zero padding, which must add 0 to
// the dot product 4 n - 2 * popcount of n nibbles, so its "popcount" is 2 whatever the weight. 17 * 17 rows of 16 bytes
// are 4.6 KB and stay in L1. Activations are expanded once to byte offsets of rows ("codes"), shared by all output
// channels; a code is loaded, its row broadcast to both halves of a vector, and shuffled by each block's weights.
//
// Sums. Three lookups fit a byte without a carry between its fields (3 * 4 = 12 < 16): s = t1 + t2 + t3. Then
//   total += s               (mod 256)
//   high  += s >> 4          (the second pixel; at most 63 nibbles, 252)
// and at the end low = total - 16 * high (mod 256) is the first pixel exactly, since it too is at most 252. The shift is
// shared by two s: both are masked to multiples of 16, and VPAVGB, (x + y + 1) >> 1, gives 8 * (high + high') with
// nothing lost and no carry out of the byte; one 16-bit shift by 3 moves only zeros across bytes.
//
// Cost of 6 nibbles of a pair and 32 channels (1536 products): 6 VPSHUFB, 6 VPADDB, 2 VPAND, 1 VPAVGB, 1 shift, 1 VPADDB
// = 17 vector operations, 4.25 cycles on four vector pipes: a ceiling of 361 products a cycle, against 256 for one pixel
// a lookup (2 VPSHUFB a cycle) and about 85 for scalar POPCNT. Rows and codes cost 6 + 2 loads more, which two blocks of
// output channels share.
//
// Channels that are not a multiple of 4: bits past the last are 0 on both sides and count as agreeing, so each tap
// inside the image adds `extra` = 4 * nibbles - channels too much, which the pixel's starting value takes off.
#include "bconv/avx2_codes.h"
#include "bconv/epilogue_avx2.h"
#include "bconv/taps.h"

#define EBNET_INLINE inline __attribute__((always_inline))

namespace ebnet::avx2 {
namespace {

constexpr int kMaxNibbles = 63;      // 4 * 63 = 252 fits a byte

struct PairTable {
  alignas(64) std::uint8_t rows[kRows * kRows * kRowBytes] = {};

  static constexpr int differing(int activation, int weight) {
    if (activation == kPad) return 2;
    int count = 0;
    for (int bit = 0; bit < 4; ++bit) count += ((activation ^ weight) >> bit) & 1;
    return count;
  }

  constexpr PairTable() {
    for (int a = 0; a < kRows; ++a) {
      for (int b = 0; b < kRows; ++b) {
        for (int w = 0; w < 16; ++w) {
          rows[(a * kRows + b) * kRowBytes + w] =
              static_cast<std::uint8_t>(differing(a, w) + 16 * differing(b, w));
        }
      }
    }
  }
};

constexpr PairTable kTable;

inline __m256i table_row(std::uint64_t code) {
  return _mm256_broadcastsi128_si256(
      _mm_load_si128(reinterpret_cast<const __m128i*>(kTable.rows + (code & 0xffff))));
}

inline __m256i load(const std::uint8_t* bytes) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes)); }

// Byte sums of kPairs pairs of pixels and kBlocks blocks of 32 output channels.
template <int kPairs, int kBlocks>
struct Sums {
  __m256i total[kPairs][kBlocks];
  __m256i high[kPairs][kBlocks];

  EBNET_INLINE void clear() {
    for (int p = 0; p < kPairs; ++p) {
      for (int b = 0; b < kBlocks; ++b) total[p][b] = high[p][b] = _mm256_setzero_si256();
    }
  }

  // Adds `count` nibbles; pair p's codes start at codes + p * pitch, weights are [nibble][kBlocks][32].
  EBNET_INLINE void add(const std::uint16_t* codes, std::size_t pitch,
                                                 const std::uint8_t* weights, int count) {
    constexpr int kStep = kBlocks * kLanes;
    const __m256i high_fields = _mm256_set1_epi8(static_cast<char>(0xf0));
    int n = 0;
    for (; n + 6 <= count; n += 6, weights += 6 * kStep) {
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        // Two wide loads instead of six narrow ones: load ports, not shuffles, are what runs out first.
        std::uint64_t four;
        std::uint32_t two;
        std::memcpy(&four, codes + static_cast<std::size_t>(p) * pitch + n, sizeof four);
        std::memcpy(&two, codes + static_cast<std::size_t>(p) * pitch + n + 4, sizeof two);
        const __m256i r0 = table_row(four), r1 = table_row(four >> 16), r2 = table_row(four >> 32);
        __m256i masked[kBlocks];
#pragma GCC unroll 2
        for (int b = 0; b < kBlocks; ++b) {
          const std::uint8_t* w = weights + b * kLanes;
          const __m256i s = _mm256_add_epi8(
              _mm256_add_epi8(_mm256_shuffle_epi8(r0, load(w)), _mm256_shuffle_epi8(r1, load(w + kStep))),
              _mm256_shuffle_epi8(r2, load(w + 2 * kStep)));
          total[p][b] = _mm256_add_epi8(total[p][b], s);
          masked[b] = _mm256_and_si256(s, high_fields);
        }
        const __m256i r3 = table_row(four >> 48), r4 = table_row(two), r5 = table_row(two >> 16);
#pragma GCC unroll 2
        for (int b = 0; b < kBlocks; ++b) {
          const std::uint8_t* w = weights + 3 * kStep + b * kLanes;
          const __m256i s = _mm256_add_epi8(
              _mm256_add_epi8(_mm256_shuffle_epi8(r3, load(w)), _mm256_shuffle_epi8(r4, load(w + kStep))),
              _mm256_shuffle_epi8(r5, load(w + 2 * kStep)));
          total[p][b] = _mm256_add_epi8(total[p][b], s);
          const __m256i eighths = _mm256_avg_epu8(masked[b], _mm256_and_si256(s, high_fields));
          high[p][b] = _mm256_add_epi8(high[p][b], _mm256_srli_epi16(eighths, 3));
        }
      }
    }
    for (; n < count; ++n, weights += kStep) {
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        const __m256i row = table_row(codes[static_cast<std::size_t>(p) * pitch + static_cast<std::size_t>(n)]);
#pragma GCC unroll 2
        for (int b = 0; b < kBlocks; ++b) {
          const __m256i s = _mm256_shuffle_epi8(row, load(weights + b * kLanes));
          total[p][b] = _mm256_add_epi8(total[p][b], s);
          high[p][b] =
              _mm256_add_epi8(high[p][b], _mm256_srli_epi16(_mm256_and_si256(s, high_fields), 4));
        }
      }
    }
  }

  // dots = (first ? starts : dots) - 2 * sums, and sum up anew.
  EBNET_INLINE void flush(bool first, const std::int16_t* starts, std::int16_t (*dots)[kMaxBlocks * kLanes]) {
    const __m256i high_fields = _mm256_set1_epi8(static_cast<char>(0xf0));
    for (int p = 0; p < kPairs; ++p) {
      for (int b = 0; b < kBlocks; ++b) {
        const __m256i sixteen_high = _mm256_and_si256(_mm256_slli_epi16(high[p][b], 4), high_fields);
        const __m256i low = _mm256_sub_epi8(total[p][b], sixteen_high);
        subtract_twice(low, first, starts[2 * p], dots[2 * p] + b * kLanes);
        subtract_twice(high[p][b], first, starts[2 * p + 1], dots[2 * p + 1] + b * kLanes);
      }
    }
    clear();
  }

  static EBNET_INLINE void subtract_twice(__m256i bytes, bool first, std::int16_t start, std::int16_t* dots) {
    __m256i* out = reinterpret_cast<__m256i*>(dots);
    const __m256i lower = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)), 1);
    const __m256i upper = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(bytes, 1)), 1);
    if (first) {
      _mm256_store_si256(out, _mm256_sub_epi16(_mm256_set1_epi16(start), lower));
      _mm256_store_si256(out + 1, _mm256_sub_epi16(_mm256_set1_epi16(start), upper));
    } else {
      _mm256_store_si256(out, _mm256_sub_epi16(_mm256_load_si256(out), lower));
      _mm256_store_si256(out + 1, _mm256_sub_epi16(_mm256_load_si256(out + 1), upper));
    }
  }
};

// The dot products of one tile. A pixel's starting value is 4 for each nibble, less what bits past the last channel
// wrongly add; differing bits are taken off it twice.
struct Dots {
  alignas(64) std::int16_t values[kTilePixels][kMaxBlocks * kLanes];
  alignas(32) std::int16_t starts[kTilePixels];
};

// What a line of pixels needs from its strip.
struct Line {
  const ConvShape* shape;
  const Layout* layout;
  const std::uint16_t* codes;    // of the input row under kernel row 0
  std::size_t kernel_row_codes;  // codes from kernel row to kernel row
  std::size_t run_codes;         // from run to run of a kernel row
  std::size_t pair_codes;        // from pair to pair
  const std::uint8_t* weights;
};

// Dot products of kPairs pairs starting at pair `pair` of the line, into the tile from `pixel` on. kRun is the length of a run
// where it is known to the compiler, which then needs no code for the rest of a division by 6; else 0. Not inlined: the
// sums fill the registers.
template <int kPairs, int kBlocks, int kRun>
__attribute__((noinline)) void lookup_pairs(const Line& line, int pair, int pixel, Dots& dots) {
  const std::size_t pitch = line.pair_codes;
  const int run_nibbles = kRun != 0 ? kRun : line.layout->run_nibbles;
  const int segment_nibbles = kRun != 0 ? kRun : line.layout->segment_nibbles;
  const std::uint8_t* weights = line.weights;
  const std::uint16_t* row_codes = line.codes + static_cast<std::size_t>(pair) * pitch;
  Sums<kPairs, kBlocks> sums;
  sums.clear();
  int held = 0;
  bool first = true;
  for (int ky = line.shape->kernel_h; ky > 0; --ky, row_codes += line.kernel_row_codes) {
    const std::uint16_t* codes = row_codes;
    for (int run = line.layout->row_runs; run > 0; --run, codes += line.run_codes) {
      for (int n = 0; n < run_nibbles; n += segment_nibbles) {
        const int left = run_nibbles - n;
        const int count = left < segment_nibbles ? left : segment_nibbles;
        if (held + count > kMaxNibbles) {
          sums.flush(first, dots.starts + pixel, dots.values + pixel);
          first = false;
          held = 0;
        }
        sums.add(codes + n, pitch, weights, count);
        weights += count * kBlocks * kLanes;
        held += count;
      }
    }
  }
  sums.flush(first, dots.starts + pixel, dots.values + pixel);
}

template <int kPairs, int kBlocks, int kRun>
void lookup_run(const Line& line, int pair, int pixel, int pairs, Dots& dots) {
  for (; pairs >= kPairs; pairs -= kPairs, pair += kPairs, pixel += 2 * kPairs) {
    lookup_pairs<kPairs, kBlocks, kRun>(line, pair, pixel, dots);
  }
  if constexpr (kPairs > 1) {
    if (pairs > 0) lookup_run<kPairs - 1, kBlocks, kRun>(line, pair, pixel, pairs, dots);
  }
}

template <int kPairs, int kBlocks>
void lookup_blocks(const Line& line, int pair, int pairs, Dots& dots) {
  switch (line.layout->run_nibbles) {  // 3x3 on 16, 32 and 64 channels a group, the paper's networks
    case 12:
      return lookup_run<kPairs, kBlocks, 12>(line, pair, 0, pairs, dots);
    case 24:
      return lookup_run<kPairs, kBlocks, 24>(line, pair, 0, pairs, dots);
    case 48:
      return lookup_run<kPairs, kBlocks, 48>(line, pair, 0, pairs, dots);
    default:
      return lookup_run<kPairs, kBlocks, 0>(line, pair, 0, pairs, dots);
  }
}

// Two blocks of output channels share rows and codes, one block takes more pairs to use each weight vector more often:
// either way the sums are 8 registers.
void lookup_tile(const Line& line, int blocks, int pair, int pairs, Dots& dots) {
  if (blocks == 2) {
    lookup_blocks<2, 2>(line, pair, pairs, dots);
  } else {
    lookup_blocks<4, 1>(line, pair, pairs, dots);
  }
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
  const std::size_t row_codes = static_cast<std::size_t>(layout.positions) * static_cast<std::size_t>(layout.nibbles);
  const int rows = (strip.rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  for (int r = 0; r < rows; ++r) {
    const int y = strip.row * s.stride_h - s.pad_h + r;
    const bool inside = y >= 0 && y < s.in_h;
    const std::size_t first_pixel = inside ? static_cast<std::size_t>(y) * static_cast<std::size_t>(s.in_w) : 0;
    expand_line({words + first_pixel * pixel_words, pixel_words, inside ? s.in_w : 0}, layout, layout.positions,
                s.pad_w, s.stride_w, codes + static_cast<std::size_t>(r) * row_codes);
  }
}

// Starting values of `pixels` pixels from (y, x) on.
void set_starts(const ConvShape& s, const Layout& layout, int y, int x, int pixels, Dots& dots) {
  const int all = 4 * layout.total_nibbles;
  _mm256_store_si256(reinterpret_cast<__m256i*>(dots.starts), _mm256_set1_epi16(static_cast<short>(all)));
  const int extra = 4 * layout.nibbles - s.in_per_group();
  if (extra == 0) return;
  const TapRange rows = inside_taps(y, s.stride_h, s.dilation_h, s.pad_h, s.kernel_h, s.in_h);
  for (int i = 0; i < pixels; ++i) {
    const int column = layout.flat ? 0 : x + i;  // a flat convolution has its only tap everywhere
    const TapRange columns = inside_taps(column, s.stride_w, s.dilation_w, s.pad_w, s.kernel_w, s.in_w);
    const int taps = (rows.end - rows.begin) * (columns.end - columns.begin);
    dots.starts[i] = static_cast<std::int16_t>(all - extra * taps);
  }
}

// Pixels [x, x + pixels) of a line through lookup and epilogue. `pixel` and `row` are those of x = 0.
void run_tile(const ConvTask& task, const Line& line, int x, int pixels, int pixel, int row, int channel, int channels) {
  const ConvShape& s = *line.shape;
  Dots dots;
  set_starts(s, *line.layout, row, x, pixels, dots);
  prefetch_tile(*task.epilogue, static_cast<std::size_t>(pixel + x), pixels, channel, channels);
  lookup_tile(line, (channels + kLanes - 1) / kLanes, x / 2, (pixels + 1) / 2, dots);
  const auto finish = [&](int first, int count, int in_row) {
    finish_tile(s, *task.epilogue,
                {dots.values[first], kMaxBlocks * kLanes, static_cast<std::size_t>(pixel + x + first),
                 static_cast<std::size_t>(in_row), count, channel, channels});
  };
  if (!line.layout->flat) return finish(0, pixels, row);
  const int out_w = s.out_w();
  for (int first = 0, count = 0; first < pixels; first += count) {  // a flat line crosses rows
    const int in_row = (pixel + x + first) / out_w;
    const int left_in_row = (in_row + 1) * out_w - (pixel + x + first);
    count = left_in_row < pixels - first ? left_in_row : pixels - first;
    finish(first, count, in_row);
  }
}

void run_strip(const ConvTask& task, const Layout& layout, const Strip& strip) {
  const ConvShape& s = *task.shape;
  std::uint16_t* codes = static_cast<std::uint16_t*>(task.scratch);
  std::uint8_t* weights = static_cast<std::uint8_t*>(task.scratch) + layout.codes_bytes;
  const std::size_t row_codes = static_cast<std::size_t>(layout.positions) * static_cast<std::size_t>(layout.nibbles);
  for (int group = 0; group < s.groups; ++group) {
    expand_codes(task, layout, strip, group, codes);
    for (int block = 0; block < layout.blocks; block += kMaxBlocks) {
      const int blocks = layout.blocks - block < kMaxBlocks ? layout.blocks - block : kMaxBlocks;
      const std::uint8_t* packed = task.weights->data.data() +
                                   static_cast<std::size_t>(group * layout.blocks + block) * layout.packed_block_bytes;
      expand_weights(packed, layout, blocks, weights);
      const int channel = group * s.out_per_group() + block * kLanes;
      const int left = s.out_per_group() - block * kLanes;
      const int channels = left < blocks * kLanes ? left : blocks * kLanes;
      for (int r = 0; r < strip.rows; ++r) {
        const Line line = {&s,
                           &layout,
                           codes + static_cast<std::size_t>(r * s.stride_h) * row_codes,
                           static_cast<std::size_t>(s.dilation_h) * row_codes,
                           static_cast<std::size_t>(s.dilation_w * layout.nibbles),
                           static_cast<std::size_t>(layout.pair_step * layout.nibbles),
                           weights};
        const int pixel = layout.flat ? strip.pixel : (strip.row + r) * s.out_w();
        for (int x = 0; x < strip.line_pixels; x += kTilePixels) {
          const int pixels = strip.line_pixels - x < kTilePixels ? strip.line_pixels - x : kTilePixels;
          run_tile(task, line, x, pixels, pixel, strip.row + r, channel, channels);
        }
      }
    }
  }
}

}  // namespace

void run(const ConvTask& task) {
  const ConvShape& s = *task.shape;
  const Layout layout(s);
  begin_rows(s, *task.epilogue, task.row_begin, task.row_end);
  if (layout.flat) {
    const int end = task.row_end * s.out_w();
    for (int pixel = task.row_begin * s.out_w(); pixel < end; pixel += layout.line_pixels) {
      const int pixels = end - pixel < layout.line_pixels ? end - pixel : layout.line_pixels;
      run_strip(task, layout, {pixel / s.out_w(), 1, pixel, pixels});
    }
    return;
  }
  for (int row = task.row_begin; row < task.row_end; row += layout.line_rows) {
    const int rows = task.row_end - row < layout.line_rows ? task.row_end - row : layout.line_rows;
    run_strip(task, layout, {row, rows, 0, s.out_w()});
  }
}

}  // namespace ebnet::avx2
