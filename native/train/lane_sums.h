// The lanes of a vector added up, by halves.
#pragma once
#include "base/lanes.h"

namespace ebnet {
namespace {

template <int kCount>
float sum_of(const float* lanes) {
  if constexpr (kCount == 1) {
    return *lanes;
  } else {
    typedef float Half __attribute__((vector_size(kCount / 2 * sizeof(float))));
    Half low, high;
    std::memcpy(&low, lanes, sizeof low);
    std::memcpy(&high, lanes + kCount / 2, sizeof high);
    low += high;
    float rest[kCount / 2];
    std::memcpy(rest, &low, sizeof low);
    return sum_of<kCount / 2>(rest);
  }
}

inline float sum_of(Vector value) {
  float lanes[kLanes];
  store(lanes, value);
  return sum_of<kLanes>(lanes);
}

}  // namespace
}  // namespace ebnet
