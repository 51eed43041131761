// The fused epilogue on sixteen channels at a time; the arithmetic is that of epilogue_scalar.h, operation by operation.
#pragma once
#include "bconv/avx512_intrinsics.h"
#include "bconv/epilogue_scalar.h"

namespace ebnet {
namespace {

// A tile: `pixels` neighbours in one row, up to 16 output channels from `channel`, [pixel][dot_stride] dot products.
struct Tile32 {
  const std::int32_t* dots;
  std::size_t dot_stride;
  std::size_t pixel, row;
  int pixels, channel, channels;
};

// kAll: every step of the epilogue is wanted (the body of a network), so no step is tested for in the loop.
template <bool kAll>
inline void finish_sixteen(const ConvShape& shape, const Epilogue& e, const Tile32& tile) {
  const std::size_t c = static_cast<std::size_t>(tile.channel);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 zero = _mm512_setzero_ps();
  const __m512 scale = kAll || e.scale != nullptr ? _mm512_loadu_ps(e.scale + c) : one;
  const __m512 slope = kAll || e.slope != nullptr ? _mm512_loadu_ps(e.slope + c) : one;
  const bool with_bits = kAll || e.bits != nullptr;
  const __m512 bn_scale = with_bits ? _mm512_loadu_ps(e.bn_scale + c) : one;
  const __m512 bn_shift = with_bits ? _mm512_loadu_ps(e.bn_shift + c) : zero;
  float* row_sums = kAll || e.row_sums != nullptr ? e.row_sums + tile.row * channels + c : nullptr;
  __m512 sum = row_sums != nullptr ? _mm512_loadu_ps(row_sums) : zero;
  std::uint8_t* bits = nullptr;
  std::size_t bits_stride = 0;
  if (with_bits) {
    const BitPlace place = bit_place(tile.channel, e.bits_per_group);
    bits_stride = bit_words_per_pixel(shape.out_channels, e.bits_per_group) * sizeof(std::uint64_t);
    bits = reinterpret_cast<std::uint8_t*>(e.bits) + tile.pixel * bits_stride + place.word * sizeof(std::uint64_t) +
           place.bit / 8;
  }
  const float* skip =
      kAll || e.skip != nullptr ? static_cast<const float*>(e.skip) + tile.pixel * e.skip_stride + c : nullptr;
  float* stream =
      kAll || e.stream != nullptr ? static_cast<float*>(e.stream) + tile.pixel * e.stream_stride + c : nullptr;
  // Copies, since a store of bytes may change anything the compiler does not hold in a register.
  const std::size_t dot_stride = tile.dot_stride, skip_stride = e.skip_stride, stream_stride = e.stream_stride;
  const int pixels = tile.pixels;
  const std::int32_t* tile_dots = tile.dots;
  std::int32_t* const wide_dots = e.dots != nullptr ? e.dots + tile.pixel * channels + c : nullptr;
  for (int i = 0; i < pixels; ++i) {
    const __m512i dots = _mm512_loadu_si512(tile_dots);
    tile_dots += dot_stride;
    if (!kAll && wide_dots != nullptr) _mm512_storeu_si512(wide_dots + static_cast<std::size_t>(i) * channels, dots);
    __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scale);
    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(value));
    value = _mm512_mask_mul_ps(value, negative, slope, value);
    if (kAll || skip != nullptr) {
      value = _mm512_add_ps(value, _mm512_loadu_ps(skip));
      skip += skip_stride;
    }
    if (kAll || stream != nullptr) {
      _mm512_storeu_ps(stream, value);
      stream += stream_stride;
    }
    sum = _mm512_add_ps(sum, value);
    if (with_bits) {
      const __m512 normal = _mm512_add_ps(_mm512_mul_ps(bn_scale, value), bn_shift);
      const std::uint16_t mask = static_cast<std::uint16_t>(_mm512_cmp_ps_mask(normal, zero, _CMP_GE_OQ));
      std::memcpy(bits, &mask, sizeof mask);
      bits += bits_stride;
    }
  }
  if (row_sums != nullptr) _mm512_storeu_ps(row_sums, sum);
}

inline void finish_tile(const ConvShape& shape, const Epilogue& e, const Tile32& tile) {
  // Sixteen channels fill two bytes of the bit plane only where groups of it start at such places.
  const bool whole = e.bits == nullptr || (e.bits_per_group % 16 == 0 && tile.channel % 16 == 0);
  const bool wide = e.skip_type == StreamType::fp32 && e.stream_type == StreamType::fp32;
  if (tile.channels == 16 && whole && wide) {
    const bool all = e.scale != nullptr && e.slope != nullptr && e.skip != nullptr && e.stream != nullptr &&
                     e.bits != nullptr && e.row_sums != nullptr && e.dots == nullptr;
    if (all) {
      finish_sixteen<true>(shape, e, tile);
    } else {
      finish_sixteen<false>(shape, e, tile);
    }
    return;
  }
  for (int i = 0; i < tile.pixels; ++i) {
    for (int o = 0; o < tile.channels; ++o) {
      finish_one(shape, e, tile.pixel + static_cast<std::size_t>(i), tile.row, tile.channel + o,
                 tile.dots[static_cast<std::size_t>(i) * tile.dot_stride + static_cast<std::size_t>(o)]);
    }
  }
}

}  // namespace
}  // namespace ebnet
