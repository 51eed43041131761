// Per-sample weight gradients, a tile of registers at a time.
//
// The weight gradient of one sample is a product of matrices, G[o][f] = sum over positions l of dy[o][l] * seen[l][f],
// where seen[l] is the run of inputs that position l sees (features.h). It is wanted only in three linear forms: summed
// over samples, and dotted with each expert's weights. So a tile of G (kTileRows x 2 vectors) is summed up in registers
// over the positions, used there for all of them, and forgotten:
//
//   scores[i] += G_tile * directions[i]_tile    for each expert i; directions[i] = M_e * theta[i]
//   total     += G_tile                         M_e follows once, after the expert's last sample
//
// A tile of 6 x 16 makes 12 fused multiply-adds out of 2 loads and 6 broadcasts per position: bound by arithmetic, not
// by loads. Because all three forms are linear in G, a large map is simply cut into bands of rows that fit into the
// first cache, each used like a sample of its own. The positions whose kernel row lies in the padding are left out.
//
// A block's directions and total are small enough for the second cache and stay there over all samples of an expert.
#pragma once
#include "train/features.h"

namespace ebnet {
namespace {

struct TileTask {
  const float* dy;       // of the tile's first row, at the first position
  size_t dy_row;         // from output channel to output channel
  const float* seen;     // the run at the first position
  int rows, columns;     // positions
  size_t dy_line, seen_line, seen_column;
  const float* directions;
  size_t direction, row;  // from expert to expert, from output channel to output channel
  int experts;
  float* total;
  Vector* scores;
};

template <int kRows, int kVectors>
struct GradientTile {
  static void run(const TileTask& t) {
    Vector g[kRows][kVectors] = {};
    const float *dy = t.dy, *seen = t.seen;
    for (int y = 0; y < t.rows; ++y, dy += t.dy_line, seen += t.seen_line) {
      const float* s = seen;
      for (int x = 0; x < t.columns; ++x, s += t.seen_column) {
        Vector b[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) b[v] = load(s + v * kLanes);
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          const Vector a = splat(dy[size(r) * t.dy_row + size(x)]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) g[r][v] += a * b[v];
        }
      }
    }
    const float* directions = t.directions;
    for (int i = 0; i < t.experts; ++i, directions += t.direction) {
      Vector sums[kVectors] = {t.scores[i]};
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[v] += g[r][v] * load(directions + size(r) * t.row + v * kLanes);
      }
      if constexpr (kVectors == 2) sums[0] += sums[1];
      t.scores[i] = sums[0];
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        float* total = t.total + size(r) * t.row + v * kLanes;
        store(total, load(total) + g[r][v]);
      }
    }
  }
};

// One band of output rows of one sample: every tile of the block.
inline void gradient_band(const ConvShape& s, const Features& f, const float* dy, const float* seen, int seen_begin,
                          int begin, int end, TileTask t) {
  const float* directions = t.directions;
  float* total = t.total;
  const size_t line = size(f.columns) * size(f.channels);
  t.dy_row = size(s.out_h()) * size(s.out_w());
  t.dy_line = size(s.out_w());
  t.seen_line = size(s.stride_h) * line;
  t.seen_column = size(s.stride_w) * size(f.channels);
  const bool straight = t.seen_line == t.seen_column * t.dy_line;  // positions follow each other: one long row
  for_tiles(f.rows, [&](int rows, int row) {
    for (int run = 0; run < f.runs; ++run) {
      const int down = kernel_row(s, f, run) * s.dilation_h - s.pad_h;
      int y = begin, y_end = end;
      while (y < y_end && y * s.stride_h + down < 0) ++y;
      while (y < y_end && (y_end - 1) * s.stride_h + down >= s.in_h) --y_end;
      if (y == y_end) continue;
      t.rows = straight ? 1 : y_end - y;
      t.columns = straight ? (y_end - y) * s.out_w() : s.out_w();
      t.dy = dy + size(row) * t.dy_row + size(y) * size(s.out_w());
      const float* at = seen + size(y * s.stride_h + down - seen_begin) * line +
                        size(kernel_column(s, f, run) * s.dilation_w) * size(f.channels);
      for_vectors(f.padded, [&](int lane, bool two) {
        const size_t place = size(row) * f.width + size(run) * size(f.padded) + size(lane);
        t.seen = at + lane;
        t.directions = directions + place;
        t.total = total + place;
        two ? run_tile<GradientTile, 2>(rows, t) : run_tile<GradientTile, 1>(rows, t);
      });
    }
  });
}

// The estimator's derivative at `count` weights; true where it is 1 for all of them, as it mostly is.
inline bool derivative(Estimator estimator, const float* theta, size_t count, float* mask) {
  if (estimator == Estimator::one) return true;
  Mask other = {};
  for (size_t i = 0; i < count; i += kLanes) {
    const Vector t = load(theta + i), magnitude = t < Vector{} ? -t : t, one = splat(1.0f);
    const Vector slope = estimator == Estimator::polynomial ? splat(2.0f) - splat(2.0f) * magnitude : one;
    const Vector m = magnitude <= one ? slope : Vector{};
    other |= m != one;
    store(mask + i, m);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (other[lane] != 0) return false;
  }
  return true;
}

inline void multiply(const float* a, const float* b, size_t count, float* product) {
  for (size_t i = 0; i < count; i += kLanes) store(product + i, load(a + i) * load(b + i));
}

void sample_gradients_of_block(const SampleGradients& task, const WeightBlocks& blocks, const SamplesByExpert& samples,
                               int block, float* scratch, float* scores) {
  const ConvShape& s = task.shape;
  const Features f = features_of(s, blocks, block);
  const size_t experts = size(task.experts), count = size(f.rows) * f.width;
  float* theta = scratch;
  float* masked = theta + experts * count;
  float* mask = masked + experts * count;
  float* total = mask + count;
  float* sums = total + count;
  float* seen = sums + experts * kLanes;
  std::memset(theta, 0, experts * count * sizeof(float));
  for (int e = 0; e < task.experts; ++e) pack_weights(s, f, task.theta, e, theta + size(e) * count);
  const size_t x_sample = size(s.in_channels) * size(s.in_h) * size(s.in_w), map = size(s.out_h()) * size(s.out_w());

  for (int e = 0; e < task.experts; ++e) {
    std::memset(total, 0, count * sizeof(float));
    const int first = samples.begin[e], last = samples.begin[e + 1];
    const bool plain = first == last || derivative(task.estimator, theta + size(e) * count, count, mask);
    for (size_t i = 0; !plain && i < experts; ++i) multiply(theta + i * count, mask, count, masked + i * count);
    TileTask t = {};
    t.directions = plain ? theta : masked;
    t.direction = count;
    t.row = f.width;
    t.experts = task.experts;
    t.total = total;
    t.scores = reinterpret_cast<Vector*>(sums);
    for (int n = first; n < last; ++n) {
      const int b = samples.order[n];
      const float* dy = task.dy + (size(b) * size(s.out_channels) + size(f.group * s.out_per_group() + f.row)) * map;
      std::memset(sums, 0, experts * sizeof(Vector));
      for (int begin = 0; begin < s.out_h(); begin += blocks.map_rows) {
        const int end = least(begin + blocks.map_rows, s.out_h());
        const int seen_begin = most(0, least(s.in_h, begin * s.stride_h - s.pad_h));
        const int seen_end =
            most(seen_begin, least(s.in_h, (end - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1 - s.pad_h));
        transpose_input(s, f, task.x + size(b) * x_sample, seen_begin, seen_end, seen);
        gradient_band(s, f, dy, seen, seen_begin, begin, end, t);
      }
      for (size_t i = 0; i < experts; ++i) {
        for (int lane = 0; lane < kLanes; ++lane) scores[size(b) * experts + i] += t.scores[i][lane];
      }
    }
    if (!plain) multiply(total, mask, count, total);
    unpack_weights(s, f, total, e, task.dtheta);
  }
}

}  // namespace
}  // namespace ebnet
