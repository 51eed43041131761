// From a map of x to what the convolution sees of it: transposed, normalised, its sign.
//
//   h = (x - mean) rstd,  n = gamma h + beta,  seen = sign(n), +1 at zero; n itself where the input stays real
#pragma once
#include "train/unit_view.h"

namespace ebnet {
namespace {

// The batch norm's numbers of each group, repeated (see Repeated).
struct Normal {
  const float *mean, *rstd, *gamma, *beta;
};

class Normals {
 public:
  static size_t floats(const View& v) { return 4 * size(v.groups) * Repeated::floats(v.channels); }
  Normals(const UnitLayer& layer, const View& v, const UnitKept& kept, float* memory)
      : memory_(memory), each_(Repeated::floats(v.channels)) {
    const bool norm = layer.gamma != nullptr;
    const float* from[4] = {norm ? kept.mean : nullptr, norm ? kept.rstd : nullptr, layer.gamma, layer.beta};
    const float otherwise[4] = {0.0f, 1.0f, 1.0f, 0.0f};
    for (int group = 0; group < v.groups; ++group) {
      for (size_t i = 0; i < 4; ++i) {
        const float* of_group = from[i] == nullptr ? nullptr : from[i] + size(group * v.channels);
        Repeated::fill(of_group, otherwise[i], v.channels, memory + (4 * size(group) + i) * each_);
      }
    }
  }
  Normal operator[](int group) const {
    const float* at = memory_ + 4 * size(group) * each_;
    return {at, at + each_, at + 2 * each_, at + 3 * each_};
  }

 private:
  float* memory_;
  size_t each_;
};

inline Vector hat_of(const Normal& normal, int at, Vector x) {
  return (x - load(normal.mean + at)) * load(normal.rstd + at);
}

inline Vector normal_of(const Normal& normal, int at, Vector hat) {
  return hat * load(normal.gamma + at) + load(normal.beta + at);
}

// How much of a transposed line lies left of the image, and how much of the image follows.
inline int left_of(const View& v) { return v.left < 0 ? 0 : least(v.left, v.columns); }
inline int first_column(const View& v) { return v.left < 0 ? -v.left : 0; }
inline int used_of(const View& v) { return most(0, least(v.in_w - first_column(v), v.columns - left_of(v))); }

// Lines [first, first + lines) of a group of one sample; `hat` (null: not wanted) gets h where the image is.
inline void see(const View& v, const Normal& normal, bool binary, const float* x, int first, int lines, float* seen,
                float* hat) {
  const size_t plane = size(v.in_h) * size(v.in_w), channels = size(v.channels), line = size(v.columns) * channels;
  const size_t left = size(left_of(v)) * channels, used = size(used_of(v)) * channels;
  const int step = Repeated::step(v.channels);
  const Vector one = splat(1.0f);
  for (int row = first; row < first + lines; ++row, seen += line) {
    if (row < 0 || row >= v.in_h) {
      std::memset(seen, 0, line * sizeof(float));
    } else {
      transpose(x + size(row) * size(v.in_w) + first_column(v), plane, v.channels, used_of(v), seen + left, channels);
      // The last vector may reach behind the line: what it spoils is written after it.
      for (size_t i = left, at = 0; i < left + used; i += kLanes) {
        const Vector h = hat_of(normal, static_cast<int>(at), load(seen + i));
        const Vector n = normal_of(normal, static_cast<int>(at), h);
        if (hat != nullptr) store(hat + i, h);
        store(seen + i, binary ? (n >= Vector{} ? one : -one) : n);
        at = size(next_channel(static_cast<int>(at), step, v.channels));
      }
      std::memset(seen, 0, left * sizeof(float));
      std::memset(seen + left + used, 0, (line - left - used) * sizeof(float));
    }
    if (hat != nullptr) hat += line;
  }
  std::memset(seen, 0, 2 * kLanes * sizeof(float));
}

}  // namespace
}  // namespace ebnet
