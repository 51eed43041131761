// Per-sample weight gradients, a tile of registers at a time.
//
// The weight gradient of one sample is a product of matrices, G[o][f] = sum over positions l of dc[l][o] * seen[l][f].
// It is wanted only in linear forms: summed over samples, and dotted with each expert's weights. So a tile of G
// (kTileRows x 2 vectors) is summed up in registers over the positions, used there for all of them, and forgotten:
//
//   scores[i] += G_tile * theta[i]_tile    for each expert i
//   total     += G_tile                    both with G_tile masked where the chosen expert's weights are clipped
//
// The tile is not emptied for each sample: over a few, S_n = S_n-1 + G_n stays in the registers, `total` takes S once
// at their end, and the scores are those of S_n, of which <G_n, theta> is the difference of two that follow each other.
// A few only, so that no more than a bit or two is lost by it; and the same few however threads share the batch.
//
// A tile of kTileRows x 2 vectors makes 24 fused multiply-adds (12 with 8 lanes) out of 2 loads and 12 broadcasts per
// position: bound by arithmetic, not by loads. All samples of a piece follow each other at one tile, whose weights of all
// experts stay in the first cache meanwhile; where no gate asks for scores, their sum stays in the registers. All forms
// are linear in G, so a band of a large map is used like a sample of its own.
#pragma once
#include "train/unit_weights.h"

namespace ebnet {
namespace {

int scored_together(const UnitLayer& layer) {
  return layer.gate == nullptr ? 1 : least(view_of(layer.shape).chunk, kScoredTogether);
}

struct GradientTask {
  const float* dc;
  const float* seen;
  int samples;
  const float* directions;  // [expert][row][vectors] of the tile
  int experts;              // 0: no gate asks for scores
  int known;                // an expert whose score is not asked for; -1: none
  const float* clipped;     // weights that mask G where they are clipped; null: none is
  float* total;
  bool fresh;      // nothing is in `total` yet
  Vector* scores;  // [sample][expert]: of its sum S
  int lines, columns;
  size_t dc_step, dc_line, dc_sample, seen_line, seen_column, seen_sample;
};

template <int kRows, int kVectors>
struct GradientTile {
  using Tile = Vector[kRows][kVectors];

  static int place(int r, int i) { return (r * kVectors + i) * kLanes; }

  // g += the gradient of one sample.
  static EBNET_INLINE void add_sample(const GradientTask& t, const float* dc, const float* seen, Tile& g) {
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
  }

  // Where the clipped estimator's derivative is 0.
  static EBNET_INLINE void mask(const float* weights, Tile& g) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) g[r][i] = inside_clip(load(weights + place(r, i))) ? g[r][i] : Vector{};
    }
  }

  static EBNET_INLINE void score(const GradientTask& t, const Tile& g, Vector* scores) {
    const float* directions = t.directions;
    for (int e = 0; e < t.experts; ++e, directions += kRows * kVectors * kLanes) {
      if (e == t.known) continue;
      // Four sums, because an addition waits for the one before it.
      Vector sums[4] = {scores[e]};
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) sums[(r * kVectors + i) % 4] += g[r][i] * load(directions + place(r, i));
      }
      scores[e] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }

  static EBNET_INLINE void add_to_total(bool fresh, const Tile& g, float* total) {
    if (fresh) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) store(total + place(r, i), g[r][i]);
      }
      return;
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) store(total + place(r, i), load(total + place(r, i)) + g[r][i]);
    }
  }

  static void run(const GradientTask& t) {
    const float *dc = t.dc, *seen = t.seen;
    if (t.experts == 0) {
      Tile g = {};
      for (int n = 0; n < t.samples; ++n, dc += t.dc_sample, seen += t.seen_sample) add_sample(t, dc, seen, g);
      return add_to_total(t.fresh, g, t.total);
    }
    Vector* scores = t.scores;
    for (int first = 0; first < t.samples; first += kScoredTogether) {
      const int last = least(first + kScoredTogether, t.samples);
      Tile g = {};
      for (int n = first; n < last; ++n, dc += t.dc_sample, seen += t.seen_sample, scores += t.experts) {
        add_sample(t, dc, seen, g);
        if (t.clipped != nullptr) mask(t.clipped, g);
        score(t, g, scores);
      }
      add_to_total(t.fresh && first == 0, g, t.total);
    }
  }
};

// Samples of one expert among those of a piece.
struct Segment {
  int expert, begin, count;
  bool fresh;     // the expert's first
  bool alone;     // and its only ones
  float* dtheta;  // of the expert
};

// The tiles of some rows for a piece, whose samples are those of the segments one after another. `first` holds where the
// group's inputs begin, and directions and totals of these rows; the total of the next segment lies `each` floats behind.
// With binary weights nobody's score is known.
inline void weight_gradient(const View& v, const Piece& piece, int row, int count, const GradientTask& first,
                            bool binary_weights, const Segment* segments, int segment_count, size_t each) {
  GradientTask t = first;
  const size_t line = size(v.columns) * size(v.channels);
  t.dc_step = size(v.rows);
  t.dc_line = size(v.dc_columns()) * t.dc_step;
  t.dc_sample = v.dc;
  t.seen_line = size(v.stride_h) * line;
  t.seen_column = size(v.stride_w) * size(v.channels);
  t.seen_sample = v.seen;
  // Positions follow each other without padding between: one long row.
  const bool straight = v.back_w == 0 && t.seen_line == t.seen_column * size(v.out_w);
  for_tiles_of(v, count, [&](int run, int lane, bool two, size_t place) {
    // Positions whose kernel row lies in the padding add nothing.
    const int down = kernel_row(v, run) * v.dilation_h - v.top;
    int y = piece.begin, y_end = piece.end;
    while (y < y_end && y * v.stride_h + down < 0) ++y;
    while (y < y_end && (y_end - 1) * v.stride_h + down >= v.in_h) --y_end;
    const size_t tile = size(count) * (two ? 2 * kLanes : kLanes);
    t.lines = straight ? 1 : y_end - y;
    t.columns = straight ? (y_end - y) * v.out_w : v.out_w;
    t.directions = first.directions == nullptr ? nullptr : first.directions + place * size(first.experts);
    if (t.directions != nullptr) fetch_ahead(t.directions + tile * size(first.experts), tile * size(first.experts));
    t.total = first.total + place;
    for (const Segment* s = segments; s < segments + segment_count; ++s, t.total += each) {
      t.fresh = s->fresh && piece.begin == 0;
      if (y == y_end) {
        if (t.fresh) std::memset(t.total, 0, tile * sizeof(float));
        continue;
      }
      const size_t begin = size(s->begin);
      t.dc = first.dc + begin * v.dc + size(y - piece.begin) * t.dc_line + size(row);
      t.seen = first.seen + begin * v.seen + size(y - piece.begin) * t.seen_line + run_place(v, run) + size(lane);
      t.samples = s->count;
      t.scores = first.scores + begin * size(first.experts);
      t.known = binary_weights ? -1 : s->expert;
      const float* own = t.directions == nullptr ? nullptr : t.directions + size(s->expert) * tile;
      t.clipped = binary_weights && own != nullptr && clips(own, tile) ? own : nullptr;
      two ? run_tile<GradientTile, 2>(count, t) : run_tile<GradientTile, 1>(count, t);
    }
  });
}

}  // namespace
}  // namespace ebnet
