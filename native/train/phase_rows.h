// A row of a map to its phases and back, in vectors.
#pragma once
#include "base/lanes.h"

namespace ebnet {
namespace {

// The first `count` lanes, `fill` in the others.
inline Vector first_of(int count, Vector values, float fill) {
  Mask lane = {};
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane < (count - Mask{}) ? values : splat(fill);
}

// Every second of 2 * kLanes floats from `odd` on, and two vectors' floats in turn.
#if defined(__clang__)
inline Vector every_second(Vector low, Vector high, int odd) {
  Vector out;
  for (int i = 0; i < kLanes; ++i) out[i] = 2 * i < kLanes ? low[2 * i + odd] : high[2 * i + odd - kLanes];
  return out;
}
inline Vector in_turn(Vector even, Vector odd, int half) {
  Vector out;
  for (int i = 0; i < kLanes; ++i) out[i] = (i % 2 == 0 ? even : odd)[half * kLanes / 2 + i / 2];
  return out;
}
#else
inline Vector every_second(Vector low, Vector high, int odd) {
  Mask places = {};
  for (int i = 0; i < kLanes; ++i) places[i] = 2 * i + odd;
  return __builtin_shuffle(low, high, places);
}
inline Vector in_turn(Vector even, Vector odd, int half) {
  Mask places = {};
  for (int i = 0; i < kLanes; ++i) places[i] = i % 2 * kLanes + half * kLanes / 2 + i / 2;
  return __builtin_shuffle(even, odd, places);
}
#endif

// One vector of each phase by single numbers: other strides, and the end of a buffer. Kept out of the loops below.
__attribute__((noinline)) void split_slowly(const float* x, int width, int stride, float fill, size_t apart, float* to) {
  for (int phase = 0; phase < stride; ++phase, to += apart) {
    for (int k = 0, at = phase; k < kLanes; ++k, at += stride) to[k] = at < width ? x[at] : fill;
  }
}

__attribute__((noinline)) void add_joined_slowly(const float* from, size_t apart, int stride, int width, float* x) {
  for (int phase = 0; phase < stride; ++phase, from += apart) {
    for (int k = 0, at = phase; k < kLanes && at < width; ++k, at += stride) x[at] += from[k];
  }
}

// to[phase * apart + i] = x[stride * i + phase] for i below `room`, a multiple of the lanes; behind the row's `width`
// numbers `fill`. Nothing is read at `end` or behind it.
inline void split_row(const float* x, const float* end, int width, int stride, float fill, int room, size_t apart,
                      float* to) {
  for (int i = 0; i < room; i += kLanes, x += stride * kLanes, width -= stride * kLanes) {
    if (width > 0 && stride == 1 && end - x >= kLanes) {
      store(to + i, first_of(width, load(x), fill));
    } else if (width > 0 && stride == 2 && end - x >= 2 * kLanes) {
      const Vector low = load(x), high = load(x + kLanes);
      store(to + i, first_of((width + 1) / 2, every_second(low, high, 0), fill));
      store(to + apart + i, first_of(width / 2, every_second(low, high, 1), fill));
    } else {
      split_slowly(x, width, stride, fill, apart, to + i);
    }
  }
}

// x[stride * i + phase] += from[phase * apart + i] for i below `room` and within the row's `width` numbers. Nothing is
// touched at `end` or behind it; between, zeros may be added behind the row.
inline void add_joined_row(const float* from, size_t apart, int room, int stride, int width, const float* end, float* x) {
  for (int i = 0; i < room && width > 0; i += kLanes, x += stride * kLanes, width -= stride * kLanes) {
    if (stride == 1 && end - x >= kLanes) {
      store(x, load(x) + first_of(width, load(from + i), 0.0f));
    } else if (stride == 2 && end - x >= 2 * kLanes) {
      const Vector even = load(from + i), odd = load(from + apart + i);
      store(x, load(x) + first_of(width, in_turn(even, odd, 0), 0.0f));
      if (width > kLanes) store(x + kLanes, load(x + kLanes) + first_of(width - kLanes, in_turn(even, odd, 1), 0.0f));
    } else {
      add_joined_slowly(from + i, apart, stride, width, x);
    }
  }
}

}  // namespace
}  // namespace ebnet
