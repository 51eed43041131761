// The fused epilogue on eight channels a vector; the arithmetic is that of epilogue_scalar.h, operation by operation,
// but for two things that change no bit of a result:
//
// From counts to floats. A tile holds c, twice the differing bits, in 16 bits, and dot = start - c. A float with the
// bits 0x4B00cccc is 2^23 + c, so interleaving c with 0x4B00 converts it, and (2^23 + start) - (2^23 + c) is the dot
// product: one subtraction, exact, for both steps.
//
// From floats to bits. x >= 0 is the inverse of x's sign bit unless x is -0.0. x = bn_scale * r + bn_shift is -0.0 only
// where bn_shift is, so a bn_shift to which +0.0 was added makes the comparison a matter of collecting signs. (The NaNs
// that x86 makes of numbers are negative: their bit is 0.)
#pragma once
#include <immintrin.h>

#include <type_traits>

#include "bconv/avx2_layout.h"
#include "bconv/epilogue_scalar.h"
#include "bconv/stream_avx2.h"

namespace ebnet::avx2 {
namespace {

constexpr float kTwoTo23 = 8388608.0f;

// Whether every block is whole and wants every step, as in the body of a network.
inline bool is_whole(const ConvShape& shape, const Epilogue& e) {
  const bool all = e.scale != nullptr && e.slope != nullptr && e.skip != nullptr && e.stream != nullptr &&
                   e.bits != nullptr && e.row_sums != nullptr && e.dots == nullptr;
  return all && e.bits_per_group % 16 == 0 && shape.out_per_group() % kLanes == 0;
}

// Clears what is not written as a whole. The sums of whole blocks begin with a row's first pixel, and their bits fill
// all words where groups do.
inline void clear_rows(const ConvShape& shape, const Epilogue& e, bool whole, int row_begin, int row_end) {
  if (!whole) return begin_rows(shape, e, row_begin, row_end);
  if (e.bits_per_group % 64 == 0) return;
  Epilogue bits_only = e;
  bits_only.row_sums = nullptr;
  begin_rows(shape, bits_only, row_begin, row_end);
}

// Up to kLanes output channels from `channel` on, and where their bits go: found once, divisions are slow.
struct ChannelBlock {
  ChannelBlock() = default;
  ChannelBlock(const ConvShape& shape, const Epilogue& e, int first, int count) : channel(first), channels(count) {
    if (e.bits == nullptr) return;
    bits_stride = bit_words_per_pixel(shape.out_channels, e.bits_per_group) * sizeof(std::uint64_t);
    whole_bytes = e.bits_per_group % 8 == 0 && first % 8 == 0;
    for (int eight = 0; whole_bytes && 8 * eight < count; ++eight) {
      const BitPlace place = bit_place(first + 8 * eight, e.bits_per_group);
      bits[eight] =
          reinterpret_cast<std::uint8_t*>(e.bits) + place.word * sizeof(std::uint64_t) + place.bit / 8;
    }
  }

  int channel = 0, channels = 0;
  bool whole_bytes = true;              // eight channels fill one byte of the bit plane
  std::size_t bits_stride = 0;          // bytes from pixel to pixel
  std::uint8_t* bits[kLanes / 8] = {};  // the bytes of the sample's first pixel
};

// A tile: `pixels` neighbours in one row.
struct Tile {
  const std::uint16_t* twice;  // [pixel][kLanes], twice the differing bits, channels in the order of count_of
  const float* starts;         // [pixel], the dot product without them, plus 2^23
  std::size_t pixel, row;
  int pixels;
  bool begins_row;
};

// Asks for the tile's part of skip and stream before its dot products are computed: they are larger than L2, and slices
// of 32 channels are no pattern a hardware prefetcher follows.
inline void prefetch_tile(const Epilogue& e, std::size_t pixel, int pixels, int channel, int channels) {
  constexpr std::size_t kLineBytes = 64;
  if (e.stream == nullptr) return;
  const auto ask = [&](const void* values, std::size_t stride, StreamType type, auto intent) {
    const std::size_t first = (pixel * stride + static_cast<std::size_t>(channel)) * value_bytes(type);
    const std::size_t bytes = static_cast<std::size_t>(channels) * value_bytes(type);
    const auto* at = static_cast<const std::uint8_t*>(values) + first;
    for (int p = 0; p < pixels; ++p, at += stride * value_bytes(type)) {
      for (std::size_t b = 0; b < bytes; b += kLineBytes) __builtin_prefetch(at + b, decltype(intent)::value);
    }
  };
  ask(e.stream, e.stream_stride, e.stream_type, std::true_type{});
  if (e.skip != nullptr && e.skip != e.stream) ask(e.skip, e.skip_stride, e.skip_type, std::false_type{});
}

// Dot products of eight channels as floats: `raised` is 2^23 + count, `start` 2^23 + the dot product without them.
inline __m256 dot_of(__m256 start, __m256i raised) { return _mm256_sub_ps(start, _mm256_castsi256_ps(raised)); }

inline __m256 prelu(__m256 value, __m256 slope) {
  return _mm256_blendv_ps(value, _mm256_mul_ps(slope, value), value);  // the sign bit chooses
}

// Signs of 32 channels, four vectors of eight in order: the bit is 1 where the value is not negative. Saturation keeps
// signs, and packing works on the halves of vectors, so that pieces of four channels have to be put in order.
inline std::uint32_t sign_bits(const __m256* values) {
  const __m256i first = _mm256_packs_epi32(_mm256_castps_si256(values[0]), _mm256_castps_si256(values[1]));
  const __m256i second = _mm256_packs_epi32(_mm256_castps_si256(values[2]), _mm256_castps_si256(values[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), order);
  return ~static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
}

// A whole block with every step of the epilogue: pixel by pixel, parameters from L1. From a count to a bit it is a
// chain of some forty cycles, of which the CPU overlaps too few by itself: each step is taken for all 32 channels before
// the next, and the bits are made of the pixel before, whose values are there already.
template <typename Skip, typename Result>
inline void finish_block(const ConvShape& shape, const Epilogue& e, const ChannelBlock& block, const Tile& tile) {
  const std::size_t c = static_cast<std::size_t>(block.channel);
  const float* const scale = e.scale + c;
  const float* const slope = e.slope + c;
  const float* const bn_scale = e.bn_scale + c;
  alignas(32) float bn_shift[kLanes];
  float* const row_sums = e.row_sums + tile.row * static_cast<std::size_t>(shape.out_channels) + c;
  __m256 sums[4], values[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    _mm256_store_ps(bn_shift + 8 * v, _mm256_add_ps(_mm256_loadu_ps(e.bn_shift + c + 8 * v), _mm256_setzero_ps()));
    sums[v] = tile.begins_row ? _mm256_setzero_ps() : _mm256_loadu_ps(row_sums + 8 * v);
  }
  const std::size_t skip_step = e.skip_stride * Skip::kBytes, stream_step = e.stream_stride * Result::kBytes;
  const auto* skip = static_cast<const std::uint8_t*>(e.skip) + tile.pixel * skip_step + c * Skip::kBytes;
  auto* stream = static_cast<std::uint8_t*>(e.stream) + tile.pixel * stream_step + c * Result::kBytes;
  const std::size_t bits_stride = block.bits_stride;
  std::uint8_t* lower = block.bits[0] + tile.pixel * bits_stride;
  std::uint8_t* upper = block.bits[2] + tile.pixel * bits_stride;
  const std::uint16_t* twice = tile.twice;
  const float* starts = tile.starts;
  const __m256i two_to_23 = _mm256_set1_epi16(0x4B00);
  const auto make_values = [&]() __attribute__((always_inline)) {
    const __m256 start = _mm256_broadcast_ss(starts);
    const __m256i counts[] = {_mm256_load_si256(reinterpret_cast<const __m256i*>(twice)),
                              _mm256_load_si256(reinterpret_cast<const __m256i*>(twice + 16))};
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m256i raised = v % 2 == 0 ? _mm256_unpacklo_epi16(counts[v / 2], two_to_23)
                                        : _mm256_unpackhi_epi16(counts[v / 2], two_to_23);
      values[v] = dot_of(start, raised);
    }
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) values[v] = _mm256_mul_ps(values[v], _mm256_loadu_ps(scale + 8 * v));
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) values[v] = prelu(values[v], _mm256_loadu_ps(slope + 8 * v));
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) values[v] = _mm256_add_ps(values[v], Skip::load(skip + 8 * v * Skip::kBytes));
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      Result::store(stream + 8 * v * Result::kBytes, values[v]);
      sums[v] = _mm256_add_ps(sums[v], values[v]);
    }
    twice += kLanes;
    ++starts;
    skip += skip_step;
    stream += stream_step;
  };
  const auto make_bits = [&]() __attribute__((always_inline)) {
    __m256 normal[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m256 product = _mm256_mul_ps(_mm256_loadu_ps(bn_scale + 8 * v), values[v]);
      normal[v] = _mm256_add_ps(product, _mm256_load_ps(bn_shift + 8 * v));
    }
    const std::uint32_t signs = sign_bits(normal);
    const std::uint16_t halves[] = {static_cast<std::uint16_t>(signs), static_cast<std::uint16_t>(signs >> 16)};
    std::memcpy(lower, halves, sizeof halves[0]);
    std::memcpy(upper, halves + 1, sizeof halves[1]);
    lower += bits_stride;
    upper += bits_stride;
  };
  make_values();
  for (int left = tile.pixels; left > 1; --left) {
    make_bits();
    make_values();
  }
  make_bits();
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) _mm256_storeu_ps(row_sums + 8 * v, sums[v]);
}

// Eight channels from the block's channel `offset` on, a multiple of eight, with those steps that are wanted.
template <typename Skip, typename Result>
inline void finish_eight(const ConvShape& shape, const Epilogue& e, const ChannelBlock& block, const Tile& tile,
                         int offset) {
  const std::size_t c = static_cast<std::size_t>(block.channel + offset);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 zero = _mm256_setzero_ps();
  const __m256i two_to_23 = _mm256_set1_epi16(0x4B00);
  const __m256 scale = e.scale != nullptr ? _mm256_loadu_ps(e.scale + c) : one;
  const __m256 slope = e.slope != nullptr ? _mm256_loadu_ps(e.slope + c) : one;
  const __m256 bn_scale = e.bits != nullptr ? _mm256_loadu_ps(e.bn_scale + c) : one;
  const __m256 bn_shift = e.bits != nullptr ? _mm256_add_ps(_mm256_loadu_ps(e.bn_shift + c), zero) : zero;
  float* row_sums = e.row_sums != nullptr ? e.row_sums + tile.row * channels + c : nullptr;
  __m256 sum = row_sums != nullptr ? _mm256_loadu_ps(row_sums) : zero;
  const auto* skip = static_cast<const std::uint8_t*>(e.skip);
  auto* stream = static_cast<std::uint8_t*>(e.stream);
  for (int i = 0; i < tile.pixels; ++i) {
    const std::size_t pixel = tile.pixel + static_cast<std::size_t>(i);
    const __m256i counts =
        _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.twice + i * kLanes + offset / 16 * 16));
    const __m256i raised =
        offset % 16 == 0 ? _mm256_unpacklo_epi16(counts, two_to_23) : _mm256_unpackhi_epi16(counts, two_to_23);
    const __m256 dot = dot_of(_mm256_set1_ps(tile.starts[i]), raised);
    if (e.dots != nullptr) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(e.dots + pixel * channels + c), _mm256_cvtps_epi32(dot));
    }
    __m256 value = prelu(_mm256_mul_ps(dot, scale), slope);
    if (skip != nullptr) value = _mm256_add_ps(value, Skip::load(skip + (pixel * e.skip_stride + c) * Skip::kBytes));
    if (stream != nullptr) Result::store(stream + (pixel * e.stream_stride + c) * Result::kBytes, value);
    sum = _mm256_add_ps(sum, value);
    if (e.bits != nullptr) {
      const __m256 normal = _mm256_add_ps(_mm256_mul_ps(bn_scale, value), bn_shift);
      block.bits[offset / 8][pixel * block.bits_stride] = static_cast<std::uint8_t>(~_mm256_movemask_ps(normal));
    }
  }
  if (row_sums != nullptr) _mm256_storeu_ps(row_sums, sum);
}

// `whole` as is_whole says.
inline void finish_tile(const ConvShape& shape, const Epilogue& e, bool whole, const ChannelBlock& block,
                        const Tile& tile) {
  if (e.stream == nullptr && e.bits == nullptr && e.row_sums == nullptr && e.dots == nullptr) return;
  int offset = 0;
  with_streams(e.skip_type, e.stream_type, [&](auto skip, auto result) {
    if (whole) return finish_block<decltype(skip), decltype(result)>(shape, e, block, tile);
    for (; block.whole_bytes && offset + 8 <= block.channels; offset += 8) {
      finish_eight<decltype(skip), decltype(result)>(shape, e, block, tile, offset);
    }
  });
  if (whole) return;
  for (int i = 0; i < tile.pixels; ++i) {
    for (int o = offset; o < block.channels; ++o) {
      const int dot = static_cast<int>(tile.starts[i] - kTwoTo23) - tile.twice[i * kLanes + count_of(o)];
      finish_one(shape, e, tile.pixel + static_cast<std::size_t>(i), tile.row, block.channel + o, dot);
    }
  }
}

}  // namespace
}  // namespace ebnet::avx2
