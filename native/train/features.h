// What a block of weights sees of one sample, channels last.
//
// With the input as [row][column][channel], the taps of one kernel row that an output position sees are one run of
// memory (kw * channels numbers; with horizontal dilation kw runs of `channels`). A run's lanes are therefore loaded
// straight from the input at position * stride: there are no columns to copy, only the transposed input itself. The
// weights of a block are kept in the same order, [row][run][lane], runs padded with zeros to whole vectors.
#pragma once
#include "base/lanes.h"
#include "train/levels.h"
#include "train/tiles.h"
#include "train/transpose.h"

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

inline const float* weights_of(const ConvShape& s, const Features& f, const float* weights, int expert, int row) {
  const size_t out = size(expert) * size(s.out_channels) + size(f.group * s.out_per_group() + f.row + row);
  return weights + (out * size(s.in_per_group()) + size(f.channel)) * size(s.taps());
}

// One output channel's weights from torch's [channel][tap] to [run][lane], and back. `packed` is zero
// where runs are padded and stays so.
inline void pack_row(const ConvShape& s, const Features& f, const float* from, float* packed) {
  if (f.run == f.padded) return transpose(from, size(s.taps()), f.channels, s.taps(), packed, size(f.channels));
  for (int run = 0, taps = s.taps() / f.runs; run < f.runs; ++run) {
    transpose(from + run * taps, size(s.taps()), f.channels, taps, packed + run * f.padded, size(f.channels));
  }
}

inline void unpack_row(const ConvShape& s, const Features& f, const float* packed, float* to) {
  if (f.run == f.padded) return transpose(packed, size(f.channels), s.taps(), f.channels, to, size(s.taps()));
  for (int run = 0, taps = s.taps() / f.runs; run < f.runs; ++run) {
    transpose(packed + run * f.padded, size(f.channels), taps, f.channels, to + run * taps, size(s.taps()));
  }
}

inline void pack_weights(const ConvShape& s, const Features& f, const float* weights, int expert, float* packed) {
  for (int row = 0; row < f.rows; ++row) {
    pack_row(s, f, weights_of(s, f, weights, expert, row), packed + size(row) * f.width);
  }
}

inline void unpack_weights(const ConvShape& s, const Features& f, const float* packed, int expert, float* weights) {
  for (int row = 0; row < f.rows; ++row) {
    unpack_row(s, f, packed + size(row) * f.width, const_cast<float*>(weights_of(s, f, weights, expert, row)));
  }
}

// How much of a transposed line lies left of the picture, and how much of the picture follows.
inline int left_of(const ConvShape& s, const Features& f) { return least(s.pad_w, f.columns); }
inline int used_of(const ConvShape& s, const Features& f) { return most(0, least(s.in_w, f.columns - s.pad_w)); }

// Rows [begin, end) of the block's channels of one sample as [row][column][channel], with the padding around, and two
// vectors of zeros behind the last, which the last position's tile may read.
inline void transpose_input(const ConvShape& s, const Features& f, const float* x, int begin, int end, float* seen) {
  const size_t plane = size(s.in_h) * size(s.in_w), channels = size(f.channels), line = size(f.columns) * channels;
  const size_t left = size(left_of(s, f)) * channels, used = size(used_of(s, f)) * channels;
  x += size(f.group * s.in_per_group() + f.channel) * plane;
  for (int row = begin; row < end; ++row, seen += line) {
    if (row < 0 || row >= s.in_h) {
      std::memset(seen, 0, line * sizeof(float));
      continue;
    }
    std::memset(seen, 0, left * sizeof(float));
    transpose(x + size(row) * size(s.in_w), plane, f.channels, used_of(s, f), seen + left, channels);
    std::memset(seen + left + used, 0, (line - left - used) * sizeof(float));
  }
  std::memset(seen, 0, 2 * kLanes * sizeof(float));
}

}  // namespace
}  // namespace ebnet
