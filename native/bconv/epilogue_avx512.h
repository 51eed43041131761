// The fused epilogue on sixteen channels a vector; the arithmetic is that of epilogue_scalar.h, operation by operation.
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

// Asks for the tile's part of skip and stream before its dot products are computed: they are larger than L1, and slices
// of a few channels are no pattern a hardware prefetcher follows.
inline void prefetch_tile(const Epilogue& e, std::size_t pixel, int pixels, int channel, int channels) {
  constexpr std::size_t kLine = 64;
  const auto lines = [&](const void* values, std::size_t stride, StreamType type, auto prefetch) {
    const std::size_t bytes = static_cast<std::size_t>(channels) * value_bytes(type);
    const char* from =
        static_cast<const char*>(values) + (pixel * stride + static_cast<std::size_t>(channel)) * value_bytes(type);
    for (int i = 0; i < pixels; ++i, from += stride * value_bytes(type)) {
      for (std::size_t byte = 0; byte < bytes; byte += kLine) prefetch(from + byte);
    }
  };
  if (e.stream != nullptr) {
    lines(e.stream, e.stream_stride, e.stream_type, [](const char* line) { __builtin_prefetch(line, 1); });
  }
  if (e.skip != nullptr && e.skip != e.stream) {
    lines(e.skip, e.skip_stride, e.skip_type, [](const char* line) { __builtin_prefetch(line, 0); });
  }
}

// Sixteen values of a stream, widened.
inline __m512 load_sixteen(const void* values, StreamType type) {
  if (type == StreamType::fp32) return _mm512_loadu_ps(values);
  const __m256i narrow = _mm256_loadu_si256(static_cast<const __m256i*>(values));
  if (type == StreamType::fp16) return _mm512_cvtph_ps(narrow);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
}

// float_to_bfloat16 in every lane.
inline __m256i round_to_bfloat16(__m512 values) {
  const __m512i words = _mm512_castps_si512(values);
  const __m512i last_place = _mm512_and_si512(_mm512_srli_epi32(words, 16), _mm512_set1_epi32(1));
  const __m512i raised = _mm512_add_epi32(_mm512_add_epi32(words, _mm512_set1_epi32(0x7FFF)), last_place);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(raised, 16));
}

inline void store_sixteen(void* to, __m512 values, StreamType type) {
  if (type == StreamType::fp32) return _mm512_storeu_ps(to, values);
  const __m256i narrow = type == StreamType::fp16 ? _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT)
                                                  : round_to_bfloat16(values);
  _mm256_storeu_si256(static_cast<__m256i*>(to), narrow);
}

// kAll: every step of the epilogue is wanted (the body of a network), so no step is tested for in the loop, nor are the
// types kSkip and kStream, which otherwise stand for nothing.
template <bool kAll, StreamType kSkip = StreamType::fp32, StreamType kStream = StreamType::fp32>
inline void finish_sixteen(const ConvShape& shape, const Epilogue& e, const Tile32& tile) {
  const std::size_t c = static_cast<std::size_t>(tile.channel);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 zero = _mm512_setzero_ps();
  const __m512 scale = kAll || e.scale != nullptr ? _mm512_loadu_ps(e.scale + c) : one;
  const __m512 slope = kAll || e.slope != nullptr ? _mm512_loadu_ps(e.slope + c) : one;
  const bool shifts = !kAll && e.shift != nullptr, act_last = !kAll && e.act_last, adds = !kAll && e.after != nullptr;
  const __m512 shift = shifts ? _mm512_loadu_ps(e.shift + c) : zero;
  const __m512 after = adds ? _mm512_loadu_ps(e.after + c) : zero;
  const auto prelu = [slope](__m512 v) __attribute__((always_inline)) {
    return _mm512_mask_mul_ps(v, _mm512_movepi32_mask(_mm512_castps_si512(v)), slope, v);
  };
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
  // Copies, since a store of bytes may change anything the compiler does not hold in a register.
  const std::size_t dot_stride = tile.dot_stride;
  const StreamType skip_type = kAll ? kSkip : e.skip_type;
  const StreamType stream_type = kAll ? kStream : e.stream_type;
  const std::size_t skip_stride = e.skip_stride * value_bytes(skip_type);
  const std::size_t stream_stride = e.stream_stride * value_bytes(stream_type);
  const char* skip = kAll || e.skip != nullptr
                         ? static_cast<const char*>(e.skip) + tile.pixel * skip_stride + c * value_bytes(skip_type)
                         : nullptr;
  char* stream = kAll || e.stream != nullptr
                     ? static_cast<char*>(e.stream) + tile.pixel * stream_stride + c * value_bytes(stream_type)
                     : nullptr;
  const int pixels = tile.pixels;
  const std::int32_t* tile_dots = tile.dots;
  std::int32_t* const wide_dots = e.dots != nullptr ? e.dots + tile.pixel * channels + c : nullptr;
  for (int i = 0; i < pixels; ++i) {
    const __m512i dots = _mm512_loadu_si512(tile_dots);
    tile_dots += dot_stride;
    if (!kAll && wide_dots != nullptr) _mm512_storeu_si512(wide_dots + static_cast<std::size_t>(i) * channels, dots);
    __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scale);
    if (shifts) value = _mm512_add_ps(value, shift);
    if (!act_last) value = prelu(value);
    if (kAll || skip != nullptr) {
      value = _mm512_add_ps(value, load_sixteen(skip, skip_type));
      skip += skip_stride;
    }
    if (act_last) value = prelu(value);
    if (adds) value = _mm512_add_ps(value, after);
    if (kAll || stream != nullptr) {
      store_sixteen(stream, value, stream_type);
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

template <StreamType kSkip>
inline void finish_all_steps(const ConvShape& shape, const Epilogue& e, const Tile32& tile) {
  switch (e.stream_type) {
    case StreamType::fp16:
      return finish_sixteen<true, kSkip, StreamType::fp16>(shape, e, tile);
    case StreamType::bf16:
      return finish_sixteen<true, kSkip, StreamType::bf16>(shape, e, tile);
    default:
      return finish_sixteen<true, kSkip, StreamType::fp32>(shape, e, tile);
  }
}

inline void finish_all_steps(const ConvShape& shape, const Epilogue& e, const Tile32& tile) {
  switch (e.skip_type) {
    case StreamType::fp16:
      return finish_all_steps<StreamType::fp16>(shape, e, tile);
    case StreamType::bf16:
      return finish_all_steps<StreamType::bf16>(shape, e, tile);
    default:
      return finish_all_steps<StreamType::fp32>(shape, e, tile);
  }
}

inline void finish_tile(const ConvShape& shape, const Epilogue& e, const Tile32& tile) {
  if (e.stream == nullptr && e.bits == nullptr && e.row_sums == nullptr && e.dots == nullptr) return;
  // Sixteen channels fill two bytes of the bit plane only where groups of it start at such places.
  const bool whole = e.bits == nullptr || (e.bits_per_group % 16 == 0 && tile.channel % 16 == 0);
  if (tile.channels == 16 && whole) {
    return e.is_papers_unit() ? finish_all_steps(shape, e, tile) : finish_sixteen<false>(shape, e, tile);
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
