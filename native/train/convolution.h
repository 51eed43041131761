// Forward and input gradient of narrow layers, one sample at a time with its expert's weights.
//
// Both sum a tile of (up to kTileRows positions) x (2 vectors) in registers. Forward, lanes are output channels:
//
//   y[l][o] = sum over the runs and their lanes k of seen[l][k] * weights[k][o]
//
// with the whole sum in one tile. Backward, lanes are those of a run of the transposed input gradient,
//
//   dseen[l][k] = sum over output channels o of dy[o][l] * weights[o][k]
//
// and each tile is added to the places its positions see; stride and dilation only move these places. What a tile reads
// is small for narrow layers: the weights of one expert and group are packed once for all its samples.
#pragma once
#include "train/features.h"

namespace ebnet {
namespace {

// Where positions lie in the transposed input, from the first line of their band.
inline void place_positions(const ConvShape& s, const Features& f, int map_rows, int* places) {
  for (int y = 0; y < map_rows; ++y) {
    for (int x = 0; x < s.out_w(); ++x) *places++ = (y * s.stride_h * f.columns + x * s.stride_w) * f.channels;
  }
}

inline size_t run_place(const ConvShape& s, const Features& f, int run) {
  const int line = kernel_row(s, f, run) * s.dilation_h, column = kernel_column(s, f, run) * s.dilation_w;
  return size(line * f.columns + column) * size(f.channels);
}

// Whether any of the output rows [first, last] sees the picture through this kernel row.
inline bool sees(const ConvShape& s, const Features& f, int run, int first, int last) {
  const int down = kernel_row(s, f, run) * s.dilation_h - s.pad_h;
  return last * s.stride_h + down >= 0 && first * s.stride_h + down < s.in_h;
}

struct ForwardTask {
  const ConvShape* shape;
  const Features* features;
  int first, last;  // output rows of the positions
  const float* seen;
  const int* places;
  const float* weights;  // [run][lane of the run][vectors]
  float* out;            // [position][vectors]
};

template <int kRows, int kVectors>
struct ForwardTile {
  static void run(const ForwardTask& t) {
    Vector sums[kRows][kVectors] = {};
    const Features& f = *t.features;
    const float* at[kRows];
    for (int r = 0; r < kRows; ++r) at[r] = t.seen + t.places[r];
    for (int run = 0; run < f.runs; ++run) {
      if (!sees(*t.shape, f, run, t.first, t.last)) continue;
      const size_t place = run_place(*t.shape, f, run);
      const float* weights = t.weights + size(run) * size(f.run) * kVectors * kLanes;
      for (size_t k = place; k < place + size(f.run); ++k, weights += kVectors * kLanes) {
        Vector w[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * kLanes);
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          const Vector a = splat(at[r][k]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sums[r][v] += a * w[v];
        }
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) store(t.out + (r * kVectors + v) * kLanes, sums[r][v]);
    }
  }
};

// An expert's weights, or their signs, of one group as [row][run][lane]; `signs` holds those of a row.
inline void pack_used(const ExpertConv& task, const Features& f, int expert, float* signs, float* packed) {
  const size_t count = size(f.channels) * size(task.shape.taps());
  for (int row = 0; row < f.rows; ++row) {
    const float* from = weights_of(task.shape, f, task.theta, expert, row);
    for (size_t i = 0; task.binary && i < count; ++i) signs[i] = from[i] >= 0.0f ? 1.0f : -1.0f;
    pack_row(task.shape, f, task.binary ? signs : from, packed + size(row) * f.width);
  }
}

// Output channels [first, first + lanes) of packed weights as [run][lane of the run][lanes].
inline void pack_panel(const Features& f, const float* packed, int first, int lanes, float* panel) {
  const int rows = least(lanes, f.rows - first);
  for (int run = 0; run < f.runs; ++run) {
    transpose(packed + size(first) * f.width + size(run) * size(f.padded), f.width, rows, f.run,
              panel + size(run) * size(f.run) * size(lanes), size(lanes));
  }
}

// visit(expert, sample) for the samples [first, last) of the order, group by group, expert by expert; prepare(expert)
// before the first sample of each.
template <typename Prepare, typename Visit>
void for_samples(const ExpertConv& task, const SamplesByExpert& samples, int first, int last, Prepare prepare,
                 Visit visit) {
  for (int e = 0; e < task.experts; ++e) {
    const int begin = most(first, samples.begin[e]), end = least(last, samples.begin[e + 1]);
    if (begin >= end) continue;
    prepare(e);
    for (int n = begin; n < end; ++n) visit(size(samples.order[n]));
  }
}

void forward(const ExpertConv& task, const WeightBlocks& blocks, const SamplesByExpert& samples, int first, int last,
             float* scratch) {
  const ConvShape& s = task.shape;
  const int positions = blocks.map_rows * s.out_w();
  const size_t map = size(s.out_h()) * size(s.out_w()), x_sample = size(s.in_channels) * size(s.in_h) * size(s.in_w);
  for (int group = 0; group < s.groups; ++group) {
    const Features f = features_of(s, blocks, group);
    const int panels = (f.rows + 2 * kLanes - 1) / (2 * kLanes);
    const size_t panel = size(f.runs) * size(f.run) * 2 * kLanes;
    int* places = reinterpret_cast<int*>(scratch);
    float* weights = scratch + positions;
    float* signs = weights + size(panels) * panel;
    float* packed = signs + size(f.channels) * size(s.taps());
    float* out = packed + size(f.rows) * f.width;
    float* seen = out + size(positions) * 2 * kLanes;
    place_positions(s, f, blocks.map_rows, places);
    const auto wide = [&](int p) { return f.rows - p * 2 * kLanes > kLanes; };
    std::memset(weights, 0, size(panels) * panel * sizeof(float));
    const auto prepare = [&](int expert) {
      pack_used(task, f, expert, signs, packed);
      for (int p = 0; p < panels; ++p) {
        pack_panel(f, packed, p * 2 * kLanes, wide(p) ? 2 * kLanes : kLanes, weights + size(p) * panel);
      }
    };
    for_samples(task, samples, first, last, prepare, [&](size_t b) {
      for (int begin = 0; begin < s.out_h(); begin += blocks.map_rows) {
        const int end = least(begin + blocks.map_rows, s.out_h()), count = (end - begin) * s.out_w();
        const int top = begin * s.stride_h - s.pad_h;
        const int lines = (end - 1 - begin) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
        transpose_input(s, f, task.from + b * x_sample, top, top + lines, seen);
        for (int p = 0; p < panels; ++p) {
          const int lanes = wide(p) ? 2 * kLanes : kLanes;
          for_tiles(count, [&](int rows, int position) {
            const int y = begin + position / s.out_w(), y_last = begin + (position + rows - 1) / s.out_w();
            const ForwardTask t = {&s, &f, y, y_last, seen, places + position, weights + size(p) * panel,
                                   out + position * lanes};
            wide(p) ? run_tile<ForwardTile, 2>(rows, t) : run_tile<ForwardTile, 1>(rows, t);
          });
          const size_t channel = b * size(s.out_channels) + size(group * f.rows + p * 2 * kLanes);
          transpose(out, size(lanes), count, least(lanes, f.rows - p * 2 * kLanes),
                    task.to + channel * map + size(begin) * size(s.out_w()), map);
        }
      }
    });
  }
}

struct BackwardTask {
  const float* dy;  // at the tile's first position
  size_t map;       // from output channel to output channel
  int channels;
  const float* weights;  // [output channel][vectors]
  float* dseen;
  const int* places;
};

template <int kRows, int kVectors>
struct BackwardTile {
  static void run(const BackwardTask& t) {
    Vector sums[kRows][kVectors] = {};
    const float *dy = t.dy, *weights = t.weights;
    for (int o = 0; o < t.channels; ++o, dy += t.map, weights += kVectors * kLanes) {
      Vector w[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const Vector a = splat(dy[r]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[r][v] += a * w[v];
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        float* to = t.dseen + t.places[r] + v * kLanes;
        store(to, load(to) + sums[r][v]);
      }
    }
  }
};

// The picture's part of the transposed gradient back as [channel][row][column]; zero where no position sees it.
inline void transpose_gradient(const ConvShape& s, const Features& f, const float* dseen, int lines, float* dx) {
  const size_t plane = size(s.in_h) * size(s.in_w), channels = size(f.channels), line = size(f.columns) * channels;
  const int used = used_of(s, f), rows = most(0, least(s.in_h, lines - s.pad_h));
  dx += size(f.group * s.in_per_group()) * plane;
  if (used < s.in_w || rows < s.in_h) std::memset(dx, 0, channels * plane * sizeof(float));
  for (int row = 0; row < rows; ++row) {
    const float* from = dseen + size(row + s.pad_h) * line + size(left_of(s, f)) * channels;
    transpose(from, channels, used, f.channels, dx + size(row) * size(s.in_w), plane);
  }
}

void input_gradient(const ExpertConv& task, const WeightBlocks& blocks, const SamplesByExpert& samples, int first,
                    int last, float* scratch) {
  const ConvShape& s = task.shape;
  const int positions = s.out_h() * s.out_w();
  const int lines = (s.out_h() - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  const size_t map = size(positions), x_sample = size(s.in_channels) * size(s.in_h) * size(s.in_w);
  for (int group = 0; group < s.groups; ++group) {
    const Features f = features_of(s, blocks, group);
    int* places = reinterpret_cast<int*>(scratch);
    float* packed = scratch + positions;
    float* weights = packed + size(f.rows) * f.width;
    float* signs = weights + size(f.rows) * f.width;
    float* dseen = signs + size(f.channels) * size(s.taps());
    const size_t seen_count = size(lines) * size(f.columns) * size(f.channels) + 2 * kLanes;
    place_positions(s, f, s.out_h(), places);
    std::memset(packed, 0, size(f.rows) * f.width * sizeof(float));
    // Weights in the order of the tiles: [run][two vectors of it][row].
    const auto prepare = [&](int expert) {
      pack_used(task, f, expert, signs, packed);
      float* to = weights;
      for (int run = 0; run < f.runs; ++run) {
        for_vectors(f.padded, [&](int lane, bool two) {
          const size_t lanes = two ? 2 * kLanes : kLanes;
          const float* from = packed + size(run) * size(f.padded) + size(lane);
          for (int row = 0; row < f.rows; ++row, from += f.width, to += lanes) {
            std::memcpy(to, from, lanes * sizeof(float));
          }
        });
      }
    };
    for_samples(task, samples, first, last, prepare, [&](size_t b) {
      std::memset(dseen, 0, seen_count * sizeof(float));
      const float* dy = task.from + (b * size(s.out_channels) + size(group * f.rows)) * map;
      const float* panel = weights;
      for (int run = 0; run < f.runs; ++run) {
        for_vectors(f.padded, [&](int lane, bool two) {
          for_tiles(positions, [&](int rows, int position) {
            if (!sees(s, f, run, position / s.out_w(), (position + rows - 1) / s.out_w())) return;
            const BackwardTask t = {dy + position, map, f.rows, panel, dseen + run_place(s, f, run) + size(lane),
                                    places + position};
            two ? run_tile<BackwardTile, 2>(rows, t) : run_tile<BackwardTile, 1>(rows, t);
          });
          panel += size(f.rows) * (two ? 2 * kLanes : kLanes);
        });
      }
      transpose_gradient(s, f, dseen, lines, task.to + b * x_sample);
    });
  }
}

}  // namespace
}  // namespace ebnet
