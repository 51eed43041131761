// The two matrix products of a real layer's tile.
//
// multiply: out[row][t] = sum over d of a(row, d) * b[d][t], lanes along the positions t. Forward a is the weights and b
// what they see; backward a is the weights the other way round and b the gradient of z.
//
// add_products: out[row][column] += sum over t of a[row][t] * b[column][t], the gradient of the weights. The lanes of a
// sum are added up once for a tile.
#pragma once
#include "train/lane_sums.h"
#include "train/tiles.h"

namespace ebnet {
namespace {

struct Multiply {
  const float* a;
  size_t a_row, a_step;  // from a(row, d) to the next row and to the next d
  const float* b;
  size_t b_row;
  int depth;
  float* out;
  size_t out_row;
};

template <int kRows, int kVectors>
struct MultiplyTile {
  static void run(const Multiply& t) {
    Vector sums[kRows][kVectors] = {};
    const float *a = t.a, *b = t.b;
    for (int d = 0; d < t.depth; ++d, a += t.a_step, b += t.b_row) {
      Vector right[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const Vector left = splat(a[size(r) * t.a_row]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[r][v] += left * right[v];
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) store(t.out + size(r) * t.out_row + v * kLanes, sums[r][v]);
    }
  }
};

// `width` positions, a multiple of the lanes.
inline void multiply(const Multiply& task, int rows, int width) {
  for_vectors(width, [&](int lane, bool two) {
    for_tiles(rows, [&](int some, int first) {
      Multiply tile = task;
      tile.a += size(first) * task.a_row;
      tile.b += lane;
      tile.out += size(first) * task.out_row + size(lane);
      two ? run_tile<MultiplyTile, 2>(some, tile) : run_tile<MultiplyTile, 1>(some, tile);
    });
  });
}

struct Products {
  const float* a;
  size_t a_row;
  const float* b;
  size_t b_row;
  int width;
  float* out;
  size_t out_row;
};

// Adds up the lanes of each sum. A function of its own: where the compiler sees that halves of a sum are wanted it keeps
// the sums in the registers that have halves, of which there are too few.
__attribute__((noinline)) void add_lanes(const float* lanes, int rows, int columns, float* out, size_t out_row) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c, lanes += kLanes) out[size(r) * out_row + size(c)] += sum_of<kLanes>(lanes);
  }
}

constexpr int kProductRows = 4, kProductColumns = kLanes == 16 ? 5 : 2;

template <int kRows, int kColumns>
void product_tile(const Products& t) {
  Vector sums[kRows][kColumns] = {};
  for (int at = 0; at < t.width; at += kLanes) {
    Vector right[kColumns];
#pragma GCC unroll 5
    for (int c = 0; c < kColumns; ++c) right[c] = load(t.b + size(c) * t.b_row + at);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vector left = load(t.a + size(r) * t.a_row + at);
#pragma GCC unroll 5
      for (int c = 0; c < kColumns; ++c) sums[r][c] += left * right[c];
    }
  }
  float lanes[kRows][kColumns][kLanes];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 5
    for (int c = 0; c < kColumns; ++c) store(lanes[r][c], sums[r][c]);
  }
  add_lanes(lanes[0][0], kRows, kColumns, t.out, t.out_row);
}

template <int kRows, int kColumns = kProductColumns>
void product_columns(int columns, const Products& t) {
  if (columns == kColumns) return product_tile<kRows, kColumns>(t);
  if constexpr (kColumns > 1) product_columns<kRows, kColumns - 1>(columns, t);
}

template <int kRows = kProductRows>
void product_rows(int rows, int columns, const Products& t) {
  if (rows == kRows) return product_columns<kRows>(columns, t);
  if constexpr (kRows > 1) product_rows<kRows - 1>(rows, columns, t);
}

// Some positions at a time, whose rows stay in the first cache while the columns pass.
constexpr int kProductPositions = 256;

inline void add_products(const Products& task, int rows, int columns) {
  for (int at = 0; at < task.width; at += kProductPositions) {
    for (int column = 0; column < columns; column += kProductColumns) {
      const int others = columns - column < kProductColumns ? columns - column : kProductColumns;
      for (int row = 0; row < rows; row += kProductRows) {
        Products tile = task;
        tile.width = task.width - at < kProductPositions ? task.width - at : kProductPositions;
        tile.a += size(row) * task.a_row + size(at);
        tile.b += size(column) * task.b_row + size(at);
        tile.out += size(row) * task.out_row + size(column);
        product_rows(rows - row < kProductRows ? rows - row : kProductRows, others, tile);
      }
    }
  }
}

}  // namespace
}  // namespace ebnet
