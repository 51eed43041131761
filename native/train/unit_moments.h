// Mean and squared distances of a plane, in two passes over memory that the first leaves in the first cache: the sum of
// squares alone would lose the variance of a map that lies far from zero.
#pragma once
#include "train/unit_view.h"

namespace ebnet {
namespace {

inline float sum_of(Vector v) {
  float sum = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane) sum += v[lane];
  return sum;
}

void moments(const float* x, size_t planes, size_t plane, float* mean, float* squares) {
  const float share = 1.0f / static_cast<float>(plane);
  for (size_t p = 0; p < planes; ++p, x += plane) {
    if (plane < kLanes) {
      float sum = 0.0f, square = 0.0f;
      for (size_t i = 0; i < plane; ++i) sum += x[i];
      const float centre = plane == 1 ? x[0] : sum * share;
      for (size_t i = 0; i < plane; ++i) square += (x[i] - centre) * (x[i] - centre);
      mean[p] = centre;
      squares[p] = square;
      continue;
    }
    const size_t whole = plane / (4 * kLanes) * (4 * kLanes);
    Vector sums[4] = {};
    for (size_t i = 0; i < whole; i += 4 * kLanes) {
      for (size_t k = 0; k < 4; ++k) sums[k] += load(x + i + k * kLanes);
    }
    for (size_t i = whole; i < plane; i += kLanes) sums[0] += load_some(x + i, plane - i);
    const float centre = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3])) * share;
    const Vector c = splat(centre);
    Vector rest[4] = {}, square[4] = {};
    for (size_t i = 0; i < whole; i += 4 * kLanes) {
      for (size_t k = 0; k < 4; ++k) {
        const Vector d = load(x + i + k * kLanes) - c;
        rest[k] += d;
        square[k] += d * d;
      }
    }
    for (size_t i = whole; i < plane; i += kLanes) {
      Vector d = load_some(x + i, plane - i) - c;
      for (size_t lane = plane - i; lane < kLanes; ++lane) d[lane] = 0.0f;
      rest[0] += d;
      square[0] += d * d;
    }
    // The first mean is rounded; what is left over moves it, and the squares were taken from it.
    const float left = sum_of((rest[0] + rest[1]) + (rest[2] + rest[3])) * share;
    mean[p] = centre + left;
    squares[p] = sum_of((square[0] + square[1]) + (square[2] + square[3])) - left * left * static_cast<float>(plane);
    if (squares[p] < 0.0f) squares[p] = 0.0f;
  }
}

}  // namespace
}  // namespace ebnet
