// The tile that both convolutions are made of: forward, and from the output's gradient back to the input's.
//
//   to[l][o] = sum over runs and their numbers k of from[l + run][k] * weights[run][k][o]
//
// for up to kTileRows positions l and two vectors of channels o, summed up in registers. Where a position reads and
// writes is told by a table, so the positions of a tile may come from several samples: where maps are small, weights
// are not read anew for each sample. Positions of all samples that stand at the same place of the map follow each
// other; then what none of a tile's positions sees of the map (taps in the padding) is left out for the whole tile.
#pragma once
#include "train/sign_sums.h"
#include "train/unit_view.h"

namespace ebnet {
namespace {

struct SumTask {
  const Run* runs;
  int count;
  const float* from;
  const Place* places;
  float* to;
  size_t lanes;  // that are written
};

template <int kRows, int kVectors>
struct SumTile {
  static void run(const SumTask& t) {
    Vector sums[kRows][kVectors] = {};
    for (const Run* run = t.runs; run < t.runs + t.count; ++run) {
      const float* at[kRows];
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) at[r] = t.from + t.places[r].from + run->place + run->length;
      const float* weights = run->weights;
      // Counted up to zero, which leaves a register for each position's address.
      for (std::ptrdiff_t k = -run->length; k != 0; ++k, weights += kVectors * kLanes) {
        Vector w[kVectors];
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) w[i] = load(weights + i * kLanes);
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          const Vector a = splat(at[r][k]);
#pragma GCC unroll 2
          for (int i = 0; i < kVectors; ++i) sums[r][i] += a * w[i];
        }
      }
    }
    if (t.lanes >= kVectors * kLanes) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) store(t.to + t.places[r].to + i * kLanes, sums[r][i]);
      }
      return;
    }
    // Through memory of their own: sums that are stored in pieces would not stay in registers above.
    float rows[kRows][kVectors * kLanes];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) store(rows[r] + i * kLanes, sums[r][i]);
    }
    if (t.lanes == kLanes / 2) return put<kLanes / 2>(t, rows);
    if (t.lanes == kLanes / 4) return put<kLanes / 4>(t, rows);
    for (int r = 0; r < kRows; ++r) std::memcpy(t.to + t.places[r].to, rows[r], t.lanes * sizeof(float));
  }

 private:
  // So many numbers of each row are one instruction; where their count is known only at run time they are a call.
  template <int kCount>
  static void put(const SumTask& t, const float (*rows)[kVectors * kLanes]) {
    for (int r = 0; r < kRows; ++r) std::memcpy(t.to + t.places[r].to, rows[r], kCount * sizeof(float));
  }
};

inline void run_sums(int rows, bool two, const SumTask& t) {
  two ? run_tile<SumTile, 2>(rows, t) : run_tile<SumTile, 1>(rows, t);
}

// The rows and columns of the map between which a tile's positions lie; they come row by row, column by column.
struct Extent {
  int top, bottom, left, right;
};

inline Extent extent_of(const Place* places, int rows, int columns) {
  const Place &first = places[0], &last = places[rows - 1];
  const bool one_row = first.row == last.row;
  return {first.row, last.row, one_row ? first.column : 0, one_row ? last.column : columns - 1};
}

}  // namespace
}  // namespace ebnet
