// How a convolution sees one sample, channels last, and how its work is cut.
//
// With a group's input as [line][column][channel], the taps of one kernel row that an output position sees are one run
// of memory (kw * channels numbers; with horizontal dilation kw runs of `channels`). A run's lanes are therefore loaded
// straight from the input at position * stride: there are no columns to copy, only the transposed input itself.
//
// Taps that see the padding at every position (all but the middle one of a 3x3 kernel on a map of one pixel) are left
// out.
#pragma once
#include "base/lanes.h"
#include "train/tiles.h"
#include "train/transpose.h"
#include "train/unit_levels.h"

namespace ebnet {
namespace {

inline int least(int a, int b) { return a < b ? a : b; }
inline int most(int a, int b) { return a > b ? a : b; }
inline int ceil_div(int a, int b) { return (a + b - 1) / b; }
inline int round_up(int value, int step) { return ceil_div(value, step) * step; }

// A row of taps, and those of it that see the image from some position.
struct Taps {
  int all, first, count;
};

inline Taps seeing_taps(int kernel, int stride, int pad, int dilation, int in, int out) {
  Taps taps = {kernel, kernel, 0};
  for (int k = 0; k < kernel; ++k) {
    bool sees = false;
    for (int o = 0; o < out && !sees; ++o) {
      const int at = o * stride - pad + k * dilation;
      sees = at >= 0 && at < in;
    }
    if (!sees) continue;
    taps.first = least(taps.first, k);
    taps.count = k - taps.first + 1;
  }
  return taps.count == 0 ? Taps{kernel, 0, 1} : taps;
}

// So many samples of an expert at most are scored together for the gate (unit_gradient.h).
constexpr int kScoredTogether = 4;

// Numbers of a piece's input and output: with their gradients they stay in the second cache. Where the weights of a
// group do not, pieces are larger, so that weights come less often.
constexpr int kPieceFloats = 1 << 16, kPieceFloatsOfManyWeights = 1 << 18, kManyWeights = 1 << 16;
constexpr int kMostPositions = 512, kLeastPositions = 96;

struct View {
  Taps down, right;
  int stride_h, stride_w, dilation_h, dilation_w;
  int top, left;                // padding above and left of what the remaining taps see
  int in_h, in_w, out_h, out_w, groups;
  int channels, rows;           // of a group: input and output
  int wide_rows;                // output channels in whole vectors
  bool joined;                  // a run holds a whole kernel row
  int runs, run, padded;        // how many, their lanes, and rounded up to whole vectors
  size_t width;                 // all runs of one output channel
  int columns;                  // of the transposed input
  int chunk, band;              // a piece of work: whole maps of so many samples, or so many output rows of one
  int lines;                    // of input that a band sees
  size_t seen;                  // floats of these lines, with two vectors behind them that the last position may read
  int back_h, back_w;           // so far a position's gradient reaches from the first line and column that it sees
  size_t dc;                    // floats of a band of output gradients with so many zeros around

  int map() const { return out_h * out_w; }
  int positions() const { return chunk * band * out_w; }
  int dc_columns() const { return out_w + 2 * back_w; }
};

inline View view_of(const ConvShape& s) {
  View v;
  v.out_h = s.out_h(), v.out_w = s.out_w(), v.in_h = s.in_h, v.in_w = s.in_w, v.groups = s.groups;
  v.down = seeing_taps(s.kernel_h, s.stride_h, s.pad_h, s.dilation_h, s.in_h, v.out_h);
  v.right = seeing_taps(s.kernel_w, s.stride_w, s.pad_w, s.dilation_w, s.in_w, v.out_w);
  v.stride_h = s.stride_h, v.stride_w = s.stride_w, v.dilation_h = s.dilation_h, v.dilation_w = s.dilation_w;
  v.top = s.pad_h - v.down.first * s.dilation_h;
  v.left = s.pad_w - v.right.first * s.dilation_w;
  v.channels = s.in_per_group(), v.rows = s.out_per_group(), v.wide_rows = round_up(v.rows, kLanes);
  v.joined = s.dilation_w == 1 || v.right.count == 1;
  v.runs = v.down.count * (v.joined ? 1 : v.right.count);
  v.run = v.channels * (v.joined ? v.right.count : 1);
  v.padded = round_up(v.run, kLanes);
  v.width = size(v.runs) * size(v.padded);
  v.columns = (v.out_w - 1) * v.stride_w + (v.right.count - 1) * v.dilation_w + 1;
  const int floats = size(v.rows) * v.width < kManyWeights ? kPieceFloats : kPieceFloatsOfManyWeights;
  const int positions = most(kLeastPositions, least(kMostPositions, floats / (v.channels + v.rows)));
  v.chunk = most(1, positions / v.map());
  if (v.chunk > kScoredTogether) v.chunk -= v.chunk % kScoredTogether;
  v.band = v.chunk > 1 ? v.out_h : ceil_div(v.out_h, ceil_div(v.out_h, most(1, positions / v.out_w)));
  v.lines = (v.band - 1) * v.stride_h + (v.down.count - 1) * v.dilation_h + 1;
  v.seen = size(v.lines) * size(v.columns) * size(v.channels) + 2 * kLanes;
  v.back_h = (v.down.count - 1) * v.dilation_h / v.stride_h;
  v.back_w = (v.right.count - 1) * v.dilation_w / v.stride_w;
  v.dc = size(v.band + 2 * v.back_h) * size(v.dc_columns()) * size(v.rows);
  return v;
}

// Whether the whole batch is one piece: small maps, whose weights are most of what is read and written. Then rows of
// weights are the outer loop of their gradient, and what an expert's rows need never leaves the near caches.
inline bool batch_in_one_piece(const UnitLayer& layer, const View& v) {
  return v.band == v.out_h && v.chunk >= layer.batch;
}

inline int kernel_row(const View& v, int run) { return v.joined ? run : run / v.right.count; }
inline int kernel_column(const View& v, int run) { return v.joined ? 0 : run % v.right.count; }

// Where a run begins, from the place of its position.
inline size_t run_place(const View& v, int run) {
  const int line = kernel_row(v, run) * v.dilation_h, column = kernel_column(v, run) * v.dilation_w;
  return size(line * v.columns + column) * size(v.channels);
}

// Some whole samples of one expert, or output rows [begin, end) of one.
struct Piece {
  const int* samples;
  int count, begin, end;
  int positions(const View& v) const { return (end - begin) * v.out_w; }  // of one sample
  int first_line(const View& v) const { return begin * v.stride_h - v.top; }
  int lines(const View& v) const {
    return (end - 1 - begin) * v.stride_h + (v.down.count - 1) * v.dilation_h + 1;
  }
};

// visit(expert, begin, end) for the samples order[begin] .. order[end - 1] of each expert within [first, last).
template <typename Visit>
void for_experts(int experts, const SamplesByExpert& samples, int first, int last, Visit visit) {
  for (int e = 0; e < experts; ++e) {
    const int begin = most(first, samples.begin[e]), end = least(last, samples.begin[e + 1]);
    if (begin < end) visit(e, begin, end);
  }
}

// Numbers per channel, repeated so that a vector can start at any channel of a flat [position][channel].
struct Repeated {
  static size_t floats(int channels) { return size(channels + kLanes); }
  static void fill(const float* from, float otherwise, int channels, float* to) {
    for (int i = 0, c = 0; i < channels + kLanes; ++i, c = c + 1 == channels ? 0 : c + 1) {
      to[i] = from == nullptr ? otherwise : from[c];
    }
  }
  // Sums that vectors added at their channels, to one for each.
  static void fold(const float* from, int channels, float* to) {
    std::memcpy(to, from, size(channels) * sizeof(float));
    for (int i = channels; i < channels + kLanes; ++i) to[i % channels] += from[i];
  }
};

// visit(first, period, channel) for the vectors of a flat [position][channel] of `count` numbers that begin at the same
// channel: first, first + period, ... below count. What they sum up stays in registers.
template <typename Visit>
void for_channels(size_t count, int channels, Visit visit) {
  size_t period = size(channels);
  while (period % kLanes != 0) period += size(channels);
  for (size_t first = 0; first < period && first < count; first += kLanes) {
    visit(first, period, static_cast<int>(first % size(channels)));
  }
}

inline void add_at(float* to, Vector value) { store(to, load(to) + value); }

// The channel a vector further; `further` is kLanes % channels, divided once and not for every vector.
inline int next_channel(int at, int further, int channels) {
  at += further;
  return at >= channels ? at - channels : at;
}

// The first `count` lanes, others zero.
inline Vector load_some(const float* from, size_t count) {
  if (count >= kLanes) return load(from);
  Vector value = {};
  std::memcpy(&value, from, count * sizeof(float));
  return value;
}

inline void store_some(float* to, Vector value, size_t count) {
  if (count >= kLanes) return store(to, value);
  if (count == kLanes / 2) {
    std::memcpy(to, &value, kLanes / 2 * sizeof(float));
    return;
  }
  std::memcpy(to, &value, count * sizeof(float));
}

// Memory one after another, each part on a line of the cache; without a base it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* take(size_t floats) {
    float* taken = base_ == nullptr ? nullptr : base_ + taken_;
    taken_ += (floats + 15) / 16 * 16;
    return taken;
  }
  size_t taken() const { return taken_; }

 private:
  float* base_;
  size_t taken_ = 0;
};

}  // namespace
}  // namespace ebnet
