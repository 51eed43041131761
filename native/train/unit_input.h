// The input gradient gathers what reached each pixel: with line l and column x counted from the first that a band sees,
//
//   dseen[l][x][c] = sum over the taps (ky, kx) and output channels o of
//                    dc[(l - ky) / stride][(x - kx) / stride][o] * w[ky][kx][o][c]
//
// over taps that divide evenly. Pixels with the same remainders by the strides have the same taps: a phase. Then it
// goes through the estimator of the input's sign and back to torch's order.
#pragma once
#include "train/unit_seen.h"
#include "train/unit_sums.h"
#include "train/unit_weights.h"

namespace ebnet {
namespace {

struct Phase {
  int down, right;
};

// The first number from `from` on that leaves `rest` when divided by `by`.
inline int first_with(int rest, int by, int from) { return from + (rest + by - from % by) % by; }

// Divisions are made before the pixels are walked: where groups are narrow they would cost more than the sums.
inline int place_inputs(const View& v, const Piece& piece, const Phase& phase, const Rows& rows, Place* places) {
  const int first = piece.first_line(v), left = left_of(v), used = used_of(v), line = v.dc_columns() * v.rows;
  const int begin = first_with(phase.down, v.stride_h, rows.begin - first);
  const int begin_x = first_with(phase.right, v.stride_w, left);
  Place* at = places;
  for (int l = begin, row = begin / v.stride_h; l < rows.end - first; l += v.stride_h, ++row) {
    const int to = (l - (rows.begin - first)) * used - left;
    for (int x = begin_x, column = begin_x / v.stride_w; x < left + used; x += v.stride_w, ++column) {
      for (int n = 0; n < piece.count; ++n) {
        *at++ = {n * static_cast<int>(v.dc) + row * line + column * v.rows,
                 n * static_cast<int>(v.seen) + (to + x) * v.channels, piece.begin + row, column};
      }
    }
  }
  return static_cast<int>(at - places);
}

// A tap of a phase: the output row and column it reaches from those of its pixel divided by the strides.
struct Tap {
  int number, row, column;
  size_t place;
};

inline int phase_taps(const View& v, const Phase& phase, Tap* taps) {
  int count = 0;
  for (int tap = 0; tap < taps_of(v); ++tap) {
    const int down = phase.down - tap / v.right.count * v.dilation_h;
    const int right = phase.right - tap % v.right.count * v.dilation_w;
    if (down % v.stride_h != 0 || right % v.stride_w != 0) continue;
    const int row = down / v.stride_h, column = right / v.stride_w;
    taps[count++] = {tap, row, column, size((row + v.back_h) * v.dc_columns() + column + v.back_w) * size(v.rows)};
  }
  return count;
}

// Of the input channels of one strip.
inline void input_gradient(const View& v, const Piece& piece, const Rows& rows, const float* dc, int p,
                           const float* strip, Place* places, Tap* taps, Run* runs, float* dseen) {
  const int lanes = wide_strip(v, p) ? 2 * kLanes : kLanes, some = least(lanes, v.channels - p * 2 * kLanes);
  for (Phase phase = {0, 0}; phase.down < v.stride_h; ++phase.down) {
    for (phase.right = 0; phase.right < v.stride_w; ++phase.right) {
      const int positions = place_inputs(v, piece, phase, rows, places), tap_count = phase_taps(v, phase, taps);
      for_tiles(positions, [&](int tile, int position) {
        const Extent e = extent_of(places + position, tile, v.columns);
        int count = 0;
        for (const Tap* t = taps; t < taps + tap_count; ++t) {
          if (e.bottom + t->row < 0 || e.top + t->row >= v.out_h) continue;
          if (e.right + t->column < 0 || e.left + t->column >= v.out_w) continue;
          runs[count++] = {t->place, v.rows, strip + t->number * v.rows * lanes};
        }
        run_sums(tile, wide_strip(v, p), {runs, count, dc, places + position, dseen + p * 2 * kLanes, size(some)});
      });
    }
  }
}

inline Vector through(Estimator estimator, Vector d, Vector n) {
  if (estimator == Estimator::one) return d;
  const Vector magnitude = n < Vector{} ? -n : n, one = splat(1.0f);
  if (estimator == Estimator::polynomial) d = d * (splat(2.0f) - splat(2.0f) * magnitude);
  return magnitude <= one ? d : Vector{};
}

// `count` numbers of [position][channel] through the estimator; the sums grow by channel, repeated.
inline void estimate(const UnitLayer& layer, const View& v, const Normal& normal, const float* hat, size_t count,
                     float* dseen, float* raw, float* raw_hat) {
  for_channels(count, v.channels, [&](size_t first, size_t period, int at) {
    Vector sum = {}, sum_hat = {};
    for (size_t i = first; i < count; i += period) {
      const Vector h = load_some(hat + i, count - i), d = load_some(dseen + i, count - i);
      const Vector dn = through(layer.input_estimator, d, normal_of(normal, at, h));
      sum += dn;
      sum_hat += dn * h;
      store_some(dseen + i, dn, count - i);
    }
    add_at(raw + at, sum);
    add_at(raw_hat + at, sum_hat);
  });
}

// Rows of the image: the gradient through the estimator and back to torch's order.
inline void emit(const UnitLayer& layer, const View& v, const Normal& normal, const Rows& rows, const float* hat,
                 float* dseen, float* raw, float* raw_hat, float* dx) {
  const size_t plane = layer.in_plane(), channels = size(v.channels);
  const int used = used_of(v), together = used == v.in_w ? rows.end - rows.begin : 1;
  hat += size(first_column(v)) * channels;
  dx += first_column(v);
  for (int y = rows.begin; y < rows.end; y += together) {
    const size_t row = size(y - rows.begin), place = row * size(used) * channels;
    estimate(layer, v, normal, hat + row * size(v.in_w) * channels, size(together * used) * channels, dseen + place,
             raw, raw_hat);
    transpose(dseen + place, channels, together * used, v.channels, dx + size(y) * size(v.in_w), plane);
  }
}

}  // namespace
}  // namespace ebnet
