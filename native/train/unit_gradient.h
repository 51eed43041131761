// Per-sample weight gradients, a tile of registers at a time.
//
// The weight gradient of one sample is a product of matrices, G[o][f] = sum over positions l of dc[l][o] * seen[l][f].
// It is wanted only in linear forms: summed over samples, and dotted with each expert's weights. So a tile of G
// (kTileRows x 2 vectors) is summed up in registers over the positions, used there for all of them, and forgotten:
//
//   scores[i] += G_tile * theta[i]_tile    for each expert i
//   total     += G_tile                    both with G_tile masked where the chosen expert's weights are clipped
//
// A tile makes 24 fused multiply-adds (12 with 8 lanes) out of 2 loads and 12 broadcasts per position: bound by
// arithmetic, not by loads. All forms are linear in G, so a band of a large map is used like a sample of its own. The
// samples of a piece follow each other at one tile, whose weights of all experts stay in the first cache meanwhile.
#pragma once
#include "train/unit_weights.h"

namespace ebnet {
namespace {

struct GradientTask {
  const float* dc;
  const float* seen;
  const float* directions;  // [expert][row][vectors] of the tile
  int experts;              // 0: no gate asks for scores
  int known;                // an expert whose score is not asked for; -1: none
  const float* mask;        // null: 1 everywhere
  float* total;
  bool fresh;      // nothing is in `total` yet
  Vector* scores;  // [expert]
  int lines, columns;
  size_t dc_step, dc_line, seen_line, seen_column;
};

template <int kRows, int kVectors>
struct GradientTile {
  static void run(const GradientTask& t) {
    Vector g[kRows][kVectors] = {};
    const float *dc = t.dc, *seen = t.seen;
    for (int y = 0; y < t.lines; ++y, dc += t.dc_line, seen += t.seen_line) {
      const float *s = seen, *d = dc;
      for (int x = 0; x < t.columns; ++x, s += t.seen_column, d += t.dc_step) {
        Vector b[kVectors];
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) b[i] = load(s + i * kLanes);
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          const Vector a = splat(d[r]);
#pragma GCC unroll 2
          for (int i = 0; i < kVectors; ++i) g[r][i] += a * b[i];
        }
      }
    }
    const auto place = [](int r, int i) { return (r * kVectors + i) * kLanes; };
    if (t.mask != nullptr) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) g[r][i] *= load(t.mask + place(r, i));
      }
    }
    const float* directions = t.directions;
    for (int e = 0; e < t.experts; ++e, directions += kRows * kVectors * kLanes) {
      if (e == t.known) continue;
      Vector sums[kVectors] = {t.scores[e]};
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) sums[i] += g[r][i] * load(directions + place(r, i));
      }
      if constexpr (kVectors == 2) sums[0] += sums[1];
      t.scores[e] = sums[0];
    }
    if (!t.fresh) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) g[r][i] += load(t.total + place(r, i));
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) store(t.total + place(r, i), g[r][i]);
    }
  }
};

// Every tile of a group for a piece; `group` holds where the group's tiles, sums and inputs begin.
inline void weight_gradient(const View& v, const Piece& piece, const GradientTask& group) {
  GradientTask t = group;
  const size_t line = size(v.columns) * size(v.channels);
  t.dc_step = size(v.rows);
  t.dc_line = size(v.dc_columns()) * t.dc_step;
  t.seen_line = size(v.stride_h) * line;
  t.seen_column = size(v.stride_w) * size(v.channels);
  // Positions follow each other without padding between: one long row.
  const bool straight = v.back_w == 0 && t.seen_line == t.seen_column * size(v.out_w);
  for_tiles(v.rows, [&](int count, int row) {
    for_tiles_of(v, {0, row, count}, [&](int run, int lane, bool two, size_t place) {
      // Positions whose kernel row lies in the padding add nothing.
      const int down = kernel_row(v, run) * v.dilation_h - v.top;
      int y = piece.begin, y_end = piece.end;
      while (y < y_end && y * v.stride_h + down < 0) ++y;
      while (y < y_end && (y_end - 1) * v.stride_h + down >= v.in_h) --y_end;
      t.total = group.total + place;
      if (y == y_end) {
        if (group.fresh) std::memset(t.total, 0, size(count) * (two ? 2 * kLanes : kLanes) * sizeof(float));
        return;
      }
      t.lines = straight ? 1 : y_end - y;
      t.columns = straight ? (y_end - y) * v.out_w : v.out_w;
      t.dc = group.dc + size(y - piece.begin) * t.dc_line + size(row);
      t.seen = group.seen + size(y - piece.begin) * t.seen_line + run_place(v, run) + size(lane);
      t.directions = group.directions == nullptr ? nullptr : group.directions + place * size(group.experts);
      t.mask = group.mask == nullptr ? nullptr : group.mask + place;
      t.scores = group.scores;
      for (int n = 0; n < piece.count; ++n, t.dc += v.dc, t.seen += v.seen, t.scores += group.experts) {
        t.fresh = group.fresh && n == 0;
        two ? run_tile<GradientTile, 2>(count, t) : run_tile<GradientTile, 1>(count, t);
      }
    });
  });
}

}  // namespace
}  // namespace ebnet
