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

// Columns of a transposed line left of the image, columns of the image left of the line, and those that both have.
inline int left_of(const View& v) { return v.left < 0 ? 0 : least(v.left, v.columns); }
inline int first_column(const View& v) { return v.left < 0 ? -v.left : 0; }
inline int used_of(const View& v) { return most(0, least(v.in_w - first_column(v), v.columns - left_of(v))); }

// The rows of the image among the lines [first, first + lines); where they all lie in the padding, none.
struct Rows {
  int begin, end;
};

inline Rows image_rows(const View& v, int first, int lines) {
  const int begin = most(0, first), end = least(v.in_h, first + lines);
  return begin < end ? Rows{begin, end} : Rows{0, 0};
}

inline size_t hat_floats(const View& v) {
  return size(v.lines) * size(v.in_w) * size(v.channels) + kLanes;
}

// Lines [first, first + lines) of a group of one sample. `hat` gets h of the image's rows, [row][column][channel].
inline void see(const View& v, const Normal& normal, bool binary, const float* x, int first, int lines, float* seen,
                float* hat) {
  const size_t channels = size(v.channels), line = size(v.columns) * channels, row = size(v.in_w) * channels;
  const size_t left = size(left_of(v)) * channels, used = size(used_of(v)) * channels;
  const Rows rows = image_rows(v, first, lines);
  if (rows.begin == rows.end) {
    std::memset(seen, 0, (size(lines) * line + 2 * kLanes) * sizeof(float));
    return;
  }
  const Vector one = splat(1.0f);
  const int channel_count = v.channels, further = kLanes % channel_count;
  transpose(x + size(rows.begin) * size(v.in_w), size(v.in_h) * size(v.in_w), v.channels,
            (rows.end - rows.begin) * v.in_w, hat, channels);
  std::memset(seen, 0, size(rows.begin - first) * line * sizeof(float));
  seen += size(rows.begin - first) * line;
  hat += size(first_column(v)) * channels;
  for (int y = rows.begin; y < rows.end; ++y, seen += line, hat += row) {
    // The last vector may reach behind the row: what it spoils of `seen` is written after it, `hat` it leaves alone.
    int at = 0;
    for (size_t i = 0; i < used; i += kLanes, at = next_channel(at, further, channel_count)) {
      const Vector h = hat_of(normal, at, load(hat + i)), n = normal_of(normal, at, h);
      used - i < kLanes ? store_some(hat + i, h, used - i) : store(hat + i, h);
      store(seen + left + i, binary ? (n >= Vector{} ? one : -one) : n);
    }
    std::memset(seen, 0, left * sizeof(float));
    std::memset(seen + left + used, 0, (line - left - used) * sizeof(float));
  }
  std::memset(seen, 0, (size(first + lines - rows.end) * line + 2 * kLanes) * sizeof(float));
}

}  // namespace
}  // namespace ebnet
