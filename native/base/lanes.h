// A vector of EBNET_DENSE_LANES floats by the compiler's vector types: the file that includes this is compiled for each
// level with its flags.
#pragma once
#include <cstddef>
#include <cstring>

namespace ebnet {
namespace {

using std::size_t;

constexpr int kLanes = EBNET_DENSE_LANES;
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
typedef int Mask __attribute__((vector_size(kLanes * sizeof(int))));

inline Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }

inline Vector splat(float value) { return value - Vector{}; }

inline size_t size(int value) { return static_cast<size_t>(value); }

}  // namespace
}  // namespace ebnet
