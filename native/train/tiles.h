// Tiles of sums in registers: their size, and how rows and lanes are cut into them.
#pragma once
#include "base/lanes.h"

namespace ebnet {
namespace {

// A tile of kTileRows x 2 vectors leaves registers for its operands: 12 of 16 with up to 8 lanes, 24 of 32 with 16.
constexpr int kTileRows = kLanes == 16 ? 12 : 6;

// Calls run(rows, first) for `count` rows in tiles of at most so many, as even as possible: 8 are 4 + 4, not 6 + 2.
template <typename Run>
void for_tiles(int count, Run run, int most = kTileRows) {
  const int tiles = (count + most - 1) / most;
  for (int tile = 0, first = 0; tile < tiles; ++tile) {
    const int rows = (count - first + tiles - tile - 1) / (tiles - tile);
    run(rows, first);
    first += rows;
  }
}

// Tile<rows, kVectors>::run(t), with the rows known only at run time.
template <template <int, int> class Tile, int kVectors, int kRows = kTileRows, typename Task>
void run_tile(int rows, const Task& t) {
  if (rows == kRows) return Tile<kRows, kVectors>::run(t);
  if constexpr (kRows > 1) run_tile<Tile, kVectors, kRows - 1>(rows, t);
}

// Calls run(lane, two) for `lanes` lanes, two vectors at a time and then perhaps one.
template <typename Run>
void for_vectors(int lanes, Run run) {
  for (int lane = 0; lane < lanes; lane += 2 * kLanes) run(lane, lanes - lane > kLanes);
}

}  // namespace
}  // namespace ebnet
