// The fused epilogue, one value at a time: the specification of the arithmetic.
//
//   v = float(dot) * scale;  v = v + shift;  v = signbit(v) ? slope * v : v;  v = v + skip;  r = v + after;
//   stream = r, rounded;  row_sums += r;  bit = (bn_scale * r + bn_shift >= 0)
//
// With act_last the third and the fourth step change places.
//
// Each operation rounds once, in this order. The files that include it are compiled with -ffp-contract=off, so no
// kernel set fuses a multiply into an add and all of them agree bit for bit. (-0.0 >= 0 holds; NaN gives bit 0.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bconv/bconv.h"

namespace ebnet {
namespace {

// Bits are or-ed in and sums added up, so a kernel clears them for its rows before the first tile.
inline void begin_rows(const ConvShape& shape, const Epilogue& e, int row_begin, int row_end) {
  const std::size_t rows = static_cast<std::size_t>(row_end - row_begin);
  const std::size_t first = static_cast<std::size_t>(row_begin);
  if (e.bits != nullptr) {
    const std::size_t words = bit_words_per_pixel(shape.out_channels, e.bits_per_group);
    const std::size_t row_words = words * static_cast<std::size_t>(shape.out_w());
    std::memset(e.bits + first * row_words, 0, rows * row_words * sizeof(std::uint64_t));
  }
  if (e.row_sums != nullptr) {
    const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
    std::memset(e.row_sums + first * channels, 0, rows * channels * sizeof(float));
  }
}

// One output value: pixel counts from the sample's first, row is the pixel's row.
inline void finish_one(const ConvShape& shape, const Epilogue& e, std::size_t pixel, std::size_t row, int channel,
                       std::int32_t dot) {
  const std::size_t c = static_cast<std::size_t>(channel);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  if (e.dots != nullptr) e.dots[pixel * channels + c] = dot;
  float value = static_cast<float>(dot);
  if (e.scale != nullptr) value = value * e.scale[c];
  if (e.shift != nullptr) value = value + e.shift[c];
  if (!e.act_last && e.slope != nullptr && __builtin_signbit(value)) value = e.slope[c] * value;
  if (e.skip != nullptr) value = value + load_value(e.skip, pixel * e.skip_stride + c, e.skip_type);
  if (e.act_last && e.slope != nullptr && __builtin_signbit(value)) value = e.slope[c] * value;
  if (e.after != nullptr) value = value + e.after[c];
  if (e.stream != nullptr) store_value(e.stream, pixel * e.stream_stride + c, value, e.stream_type);
  if (e.row_sums != nullptr) e.row_sums[row * channels + c] += value;
  if (e.bits != nullptr) {
    const float normal = e.bn_scale[c] * value + e.bn_shift[c];
    const BitPlace place = bit_place(channel, e.bits_per_group);
    const std::size_t words = bit_words_per_pixel(shape.out_channels, e.bits_per_group);
    e.bits[pixel * words + place.word] |= static_cast<std::uint64_t>(normal >= 0.0f) << place.bit;
  }
}

}  // namespace
}  // namespace ebnet
