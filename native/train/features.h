// What a block of weights sees of one sample, channels last.
//
// With the input as [row][column][channel], the taps of one kernel row that an output position sees are one run of
// memory (kw * channels numbers; with horizontal dilation kw runs of `channels`). A run's lanes are therefore loaded
// straight from the input at position * stride: there are no columns to copy, only the transposed input itself. The
// weights of a block are kept in the same order, [row][run][lane], runs padded with zeros to whole vectors.
#pragma once
#include "dense/lanes.h"
#include "train/levels.h"

namespace ebnet {
namespace {

struct Features {
  int group, row, rows, channel, channels;  // the block: output channels of the group, input channels of the group
  bool joined;                              // a run holds a whole kernel row
  int runs, run, padded;                    // how many, their lanes, and rounded up to whole vectors
  size_t width;                             // all runs of one output channel
  int columns;                              // of the transposed input
};

inline int least(int a, int b) { return a < b ? a : b; }
inline int most(int a, int b) { return a > b ? a : b; }

inline Features features_of(const ConvShape& s, const WeightBlocks& blocks, int block) {
  Features f;
  const int rest = block % (blocks.row_blocks * blocks.channel_blocks);
  f.group = block / (blocks.row_blocks * blocks.channel_blocks);
  f.row = rest / blocks.channel_blocks * blocks.rows;
  f.rows = least(blocks.rows, s.out_per_group() - f.row);
  f.channel = rest % blocks.channel_blocks * blocks.channels;
  f.channels = least(blocks.channels, s.in_per_group() - f.channel);
  f.joined = s.dilation_w == 1;
  f.runs = f.joined ? s.kernel_h : s.taps();
  f.run = f.joined ? s.kernel_w * f.channels : f.channels;
  f.padded = (f.run + kLanes - 1) / kLanes * kLanes;
  f.width = size(f.runs) * size(f.padded);
  f.columns = (s.out_w() - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
  return f;
}

inline int kernel_row(const ConvShape& s, const Features& f, int run) { return f.joined ? run : run / s.kernel_w; }
inline int kernel_column(const ConvShape& s, const Features& f, int run) { return f.joined ? 0 : run % s.kernel_w; }

// Calls visit(lane of the row, offset in torch's [channel][tap] order) for every weight of one output channel.
template <typename Visit>
void for_weights(const ConvShape& s, const Features& f, Visit visit) {
  for (int tap = 0; tap < s.taps(); ++tap) {
    const int lane = f.joined ? tap / s.kernel_w * f.padded + tap % s.kernel_w * f.channels : tap * f.padded;
    for (int c = 0; c < f.channels; ++c) visit(size(lane + c), size(c) * size(s.taps()) + size(tap));
  }
}

inline const float* weights_of(const ConvShape& s, const Features& f, const float* weights, int expert, int row) {
  const size_t out = size(expert) * size(s.out_channels) + size(f.group * s.out_per_group() + f.row + row);
  return weights + (out * size(s.in_per_group()) + size(f.channel)) * size(s.taps());
}

// One expert's block as [row][run][lane]; `packed` is zero where runs are padded and stays so.
inline void pack_weights(const ConvShape& s, const Features& f, const float* weights, int expert, float* packed) {
  for (int row = 0; row < f.rows; ++row, packed += f.width) {
    const float* from = weights_of(s, f, weights, expert, row);
    for_weights(s, f, [&](size_t lane, size_t offset) { packed[lane] = from[offset]; });
  }
}

inline void unpack_weights(const ConvShape& s, const Features& f, const float* packed, int expert, float* weights) {
  for (int row = 0; row < f.rows; ++row, packed += f.width) {
    float* to = const_cast<float*>(weights_of(s, f, weights, expert, row));
    for_weights(s, f, [&](size_t lane, size_t offset) { to[offset] = packed[lane]; });
  }
}

// Rows [begin, end) of the block's channels of one sample as [row][column][channel], with the padding left and right,
// and two vectors of zeros behind the last, which the last position's tile may read.
inline void transpose_input(const ConvShape& s, const Features& f, const float* x, int begin, int end, float* seen) {
  const size_t plane = size(s.in_h) * size(s.in_w), line = size(f.columns) * size(f.channels);
  const int first = least(s.pad_w, f.columns);
  const int used = most(0, least(s.in_w, f.columns - s.pad_w));
  x += size(f.group * s.in_per_group() + f.channel) * plane;
  for (int row = begin; row < end; ++row, seen += line) {
    const float* from = x + size(row) * size(s.in_w);
    std::memset(seen, 0, size(first) * size(f.channels) * sizeof(float));
    float* to = seen + size(first) * size(f.channels);
    for (int column = 0; column < used; ++column) {
      for (int c = 0; c < f.channels; ++c) *to++ = from[size(c) * plane + size(column)];
    }
    std::memset(to, 0, size(f.columns - first - used) * size(f.channels) * sizeof(float));
  }
  std::memset(seen, 0, 2 * kLanes * sizeof(float));
}

}  // namespace
}  // namespace ebnet
