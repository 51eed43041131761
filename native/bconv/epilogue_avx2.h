// The fused epilogue on eight channels at a time; the arithmetic is that of epilogue_scalar.h, operation by operation.
#pragma once
#include <immintrin.h>

#include "bconv/epilogue_scalar.h"

namespace ebnet {
namespace {

// A tile: `pixels` neighbours in one row, `channels` output channels from `channel`, dot products 16 bits wide,
// `dot_stride` apart from pixel to pixel.
struct Tile16 {
  const std::int16_t* dots;
  std::size_t dot_stride;
  std::size_t pixel, row;
  int pixels, channel, channels;
};

// Asks for the tile's part of skip and stream before its dot products are computed: they are larger than L2, and slices
// of 32 channels are no pattern a hardware prefetcher follows.
inline void prefetch_tile(const Epilogue& e, std::size_t pixel, int pixels, int channel, int channels) {
  constexpr int kFloatsPerLine = 16;
  if (e.stream == nullptr) return;
  for (std::size_t p = pixel; p < pixel + static_cast<std::size_t>(pixels); ++p) {
    for (int c = channel; c < channel + channels; c += kFloatsPerLine) {
      __builtin_prefetch(e.stream + p * e.stream_stride + c, 1);
      if (e.skip != nullptr && e.skip != e.stream) __builtin_prefetch(e.skip + p * e.skip_stride + c);
    }
  }
}

// kAll: every step of the epilogue is wanted (the body of a network), so no step is tested for in the loop. `bits` is the
// byte of these channels at the tile's first pixel.
template <bool kAll>
inline void finish_eight(const ConvShape& shape, const Epilogue& e, const Tile16& tile, int offset,
                         std::size_t bits_stride, std::uint8_t* bits) {
  const std::size_t c = static_cast<std::size_t>(tile.channel + offset);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 zero = _mm256_setzero_ps();
  const __m256 scale = kAll || e.scale != nullptr ? _mm256_loadu_ps(e.scale + c) : one;
  const __m256 slope = kAll || e.slope != nullptr ? _mm256_loadu_ps(e.slope + c) : one;
  const bool with_bits = kAll || e.bits != nullptr;
  const __m256 bn_scale = with_bits ? _mm256_loadu_ps(e.bn_scale + c) : one;
  const __m256 bn_shift = with_bits ? _mm256_loadu_ps(e.bn_shift + c) : zero;
  float* row_sums = kAll || e.row_sums != nullptr ? e.row_sums + tile.row * channels + c : nullptr;
  __m256 sum = row_sums != nullptr ? _mm256_loadu_ps(row_sums) : zero;
  const float* skip = kAll || e.skip != nullptr ? e.skip + tile.pixel * e.skip_stride + c : nullptr;
  float* stream = kAll || e.stream != nullptr ? e.stream + tile.pixel * e.stream_stride + c : nullptr;
  const std::int16_t* dots = tile.dots + offset;
  // Copies, since a store of a byte may change anything the compiler does not hold in a register.
  const std::size_t dot_stride = tile.dot_stride, skip_stride = e.skip_stride, stream_stride = e.stream_stride;
  const int pixels = tile.pixels;
  std::int32_t* const wide_dots = e.dots != nullptr ? e.dots + tile.pixel * channels + c : nullptr;
  for (int i = 0; i < pixels; ++i) {
    const __m256i wide = _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(dots)));
    dots += dot_stride;
    if (!kAll && wide_dots != nullptr) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(wide_dots + static_cast<std::size_t>(i) * channels), wide);
    }
    __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(wide), scale);
    value = _mm256_blendv_ps(value, _mm256_mul_ps(slope, value), value);  // the sign bit chooses
    if (kAll || skip != nullptr) {
      value = _mm256_add_ps(value, _mm256_loadu_ps(skip));
      skip += skip_stride;
    }
    if (kAll || stream != nullptr) {
      _mm256_storeu_ps(stream, value);
      stream += stream_stride;
    }
    sum = _mm256_add_ps(sum, value);
    if (with_bits) {
      const __m256 normal = _mm256_add_ps(_mm256_mul_ps(bn_scale, value), bn_shift);
      *bits = static_cast<std::uint8_t>(_mm256_movemask_ps(_mm256_cmp_ps(normal, zero, _CMP_GE_OQ)));
      bits += bits_stride;
    }
  }
  if (row_sums != nullptr) _mm256_storeu_ps(row_sums, sum);
}

inline void finish_tile(const ConvShape& shape, const Epilogue& e, const Tile16& tile) {
  if (e.stream == nullptr && e.bits == nullptr && e.row_sums == nullptr && e.dots == nullptr) return;
  const bool all = e.scale != nullptr && e.slope != nullptr && e.skip != nullptr && e.stream != nullptr &&
                   e.bits != nullptr && e.row_sums != nullptr && e.dots == nullptr;
  // Eight channels fill one byte of the bit plane only where groups of it start at whole bytes.
  const bool whole_bytes = e.bits == nullptr || (e.bits_per_group % 8 == 0 && tile.channel % 8 == 0);
  int offset = 0;
  if (whole_bytes) {
    std::uint8_t* bits = nullptr;
    std::size_t stride = 0;
    int left = 0;  // channels left in the group of the bit plane
    int gap = 0;   // unused bytes at its end
    if (e.bits != nullptr) {
      const BitPlace place = bit_place(tile.channel, e.bits_per_group);
      stride = bit_words_per_pixel(shape.out_channels, e.bits_per_group) * sizeof(std::uint64_t);
      bits = reinterpret_cast<std::uint8_t*>(e.bits) + tile.pixel * stride + place.word * sizeof(std::uint64_t) +
             place.bit / 8;
      left = e.bits_per_group - tile.channel % e.bits_per_group;
      gap = (64 - e.bits_per_group % 64) % 64 / 8;
    }
    for (; offset + 8 <= tile.channels; offset += 8) {
      if (all) {
        finish_eight<true>(shape, e, tile, offset, stride, bits);
      } else {
        finish_eight<false>(shape, e, tile, offset, stride, bits);
      }
      if (bits == nullptr) continue;
      ++bits;
      left -= 8;
      if (left == 0) {
        bits += gap;
        left = e.bits_per_group;
      }
    }
  }
  for (int i = 0; i < tile.pixels; ++i) {
    for (int o = offset; o < tile.channels; ++o) {
      finish_one(shape, e, tile.pixel + static_cast<std::size_t>(i), tile.row, tile.channel + o,
                 tile.dots[static_cast<std::size_t>(i) * tile.dot_stride + static_cast<std::size_t>(o)]);
    }
  }
}

}  // namespace
}  // namespace ebnet
