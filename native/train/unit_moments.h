// Mean and squared distances of a plane, in two passes over memory that the first leaves in the first cache: the sum of
// squares alone would lose the variance of a map that lies far from zero.
#pragma once
#include "train/lane_sums.h"
#include "train/unit_view.h"

namespace ebnet {
namespace {

// The last `count` lanes, others zero.
inline Vector last_of(int count, Vector values) {
  Mask lane = {};
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane >= (kLanes - count - Mask{}) ? values : Vector{};
}

// The sum of value(vector) over a plane of at least one vector: whole ones, and the last one overlapping them, of which
// `value` is taken where it does not.
template <typename Value>
Vector sum_over_plane(const float* x, size_t plane, Value value) {
  Vector sums[4] = {};
  size_t i = 0;
  for (; i + 4 * kLanes <= plane; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) sums[k] += value(load(x + i + k * kLanes));
  }
  for (; i + kLanes <= plane; i += kLanes) sums[0] += value(load(x + i));
  if (i < plane) sums[1] += last_of(static_cast<int>(plane - i), value(load(x + plane - kLanes)));
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

inline void moments_of_few(const float* x, size_t plane, float share, float* mean, float* squares) {
  float sum = 0.0f, square = 0.0f;
  for (size_t i = 0; i < plane; ++i) sum += x[i];
  *mean = plane == 1 ? x[0] : sum * share;
  for (size_t i = 0; i < plane; ++i) square += (x[i] - *mean) * (x[i] - *mean);
  if (squares != nullptr) *squares = square;
}

// Of each plane; `squares` may be null.
void moments(const float* x, size_t planes, size_t plane, float* mean, float* squares) {
  const float share = 1.0f / static_cast<float>(plane);
  for (size_t p = 0; p < planes; ++p, x += plane) {
    if (plane < kLanes) {
      moments_of_few(x, plane, share, mean + p, squares == nullptr ? nullptr : squares + p);
      continue;
    }
    const float centre = sum_of(sum_over_plane(x, plane, [](Vector v) { return v; })) * share;
    const Vector c = splat(centre);
    // The first mean is rounded; what is left over moves it, and the squares were taken from it.
    const float left = sum_of(sum_over_plane(x, plane, [=](Vector v) { return v - c; })) * share;
    mean[p] = centre + left;
    if (squares == nullptr) continue;
    const Vector square = sum_over_plane(x, plane, [=](Vector v) { return (v - c) * (v - c); });
    squares[p] = sum_of(square) - left * left * static_cast<float>(plane);
    if (squares[p] < 0.0f) squares[p] = 0.0f;
  }
}

}  // namespace
}  // namespace ebnet
