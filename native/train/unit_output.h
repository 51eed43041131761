// From the gradient of y back through skip, PReLU, bias and scale to that of the convolution: dc, [position][row].
#pragma once
#include "train/unit_forward.h"

namespace ebnet {
namespace {

inline Vector conv_at(const UnitLayer& layer, const void* conv, size_t place, size_t count) {
  if (!layer.counts()) {
    const float* from = static_cast<const float*>(conv) + place;
    return count < kLanes ? load_some(from, count) : load(from);
  }
  const std::int16_t* from = static_cast<const std::int16_t*>(conv) + place;
  Counts counts = {};
  if (count < kLanes) {
    std::memcpy(&counts, from, count * sizeof(std::int16_t));
  } else {
    std::memcpy(&counts, from, sizeof counts);
  }
  return __builtin_convertvector(counts, Vector);
}

// One sample's band of one group: dy [row][position] to dc [position][row]; the sums grow by channel, repeated.
struct OutputSums {
  float *slope, *scale, *bias;
};

inline void output_gradient(const UnitLayer& layer, const View& v, const float* dy, int positions, size_t conv_place,
                            const void* conv, const float* numbers, const OutputSums& sums, float* dc) {
  transpose(dy, size(v.map()), v.rows, positions, dc, size(v.rows));
  const size_t each = Repeated::floats(v.rows), count = size(positions) * size(v.rows);
  for_channels(count, v.rows, [&](size_t first, size_t period, int at) {
    const Vector scale = load(numbers + at), bias = load(numbers + each + at), slope = load(numbers + 2 * each + at);
    Vector of_slope = {}, of_scale = {}, of_bias = {};
    for (size_t i = first; i < count; i += period) {
      const Vector d = load_some(dc + i, count - i), c = conv_at(layer, conv, conv_place + i, count - i);
      const Vector z = c * scale + bias, dz = z > Vector{} ? d : d * slope;
      of_slope += z > Vector{} ? Vector{} : d * z;
      of_scale += dz * c;
      of_bias += dz;
      store_some(dc + i, dz * scale, count - i);
    }
    add_at(sums.slope + at, of_slope);
    add_at(sums.scale + at, of_scale);
    add_at(sums.bias + at, of_bias);
  });
}

// [position][row] into the middle of [line][column][row] with its zeros around.
inline void lay_out(const View& v, const float* tight, int lines, float* dc) {
  const size_t row = size(v.out_w * v.rows), line = size(v.dc_columns() * v.rows);
  dc += size(v.back_h) * line + size(v.back_w * v.rows);
  for (int y = 0; y < lines; ++y) std::memcpy(dc + size(y) * line, tight + size(y) * row, row * sizeof(float));
}

}  // namespace
}  // namespace ebnet
