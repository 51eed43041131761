// The fused epilogue on sixteen channels a vector; the arithmetic is that of epilogue_scalar.h, operation by operation.
#pragma once
#include "bconv/avx512_intrinsics.h"
#include "bconv/epilogue_scalar.h"

namespace ebnet {
namespace {

// What the tiles of a run have in common, found once: divisions are slow.
struct EpilogueSteps {
  EpilogueSteps(const ConvShape& shape, const Epilogue& e)
      : any(e.stream != nullptr || e.bits != nullptr || e.row_sums != nullptr || e.dots != nullptr),
        papers(e.is_papers_unit()),
        sixteens(e.bits == nullptr || e.bits_per_group % 16 == 0),
        bits_stride(e.bits == nullptr ? 0 : bit_words_per_pixel(shape.out_channels, e.bits_per_group) * sizeof(std::uint64_t)) {}

  bool any;                 // step is wanted
  bool papers;              // as Epilogue says
  bool sixteens;            // groups of the bit plane start where two bytes do
  std::size_t bits_stride;  // bytes from pixel to pixel of the bit plane
};

// Where the bits of a channel start in a pixel of the bit plane, in whole bytes.
inline std::size_t bits_byte(const Epilogue& e, int channel) {
  if (e.bits == nullptr) return 0;
  const BitPlace place = bit_place(channel, e.bits_per_group);
  return place.word * sizeof(std::uint64_t) + place.bit / 8;
}

// A tile: `pixels` neighbours in one row, up to 32 output channels from `channel`, [pixel][dot_stride] dot products.
struct Tile32 {
  const std::int32_t* dots;
  std::size_t dot_stride;
  std::size_t pixel, row;
  int pixels, channel, channels;
  std::size_t bits_bytes[2];  // of the first channel and of that 16 further on
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

inline __m512 prelu(__m512 values, __m512 slope) {
  return _mm512_mask_mul_ps(values, _mm512_movepi32_mask(_mm512_castps_si512(values)), slope, values);
}

// kBlocks of 16 channels. kAll: every step of the paper's unit is wanted and no other, so no step is tested for in the
// loop, nor are the types kSkip and kStream, which otherwise stand for nothing.
template <int kBlocks, bool kAll, StreamType kSkip = StreamType::fp32, StreamType kStream = StreamType::fp32>
inline void finish_blocks(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, const Tile32& tile) {
  constexpr std::size_t kLanes = 16;
  const std::size_t c = static_cast<std::size_t>(tile.channel);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 zero = _mm512_setzero_ps();
  const bool with_bits = kAll || e.bits != nullptr;
  const bool shifts = !kAll && e.shift != nullptr, act_last = !kAll && e.act_last, adds = !kAll && e.after != nullptr;
  float* const row_sums = kAll || e.row_sums != nullptr ? e.row_sums + tile.row * channels + c : nullptr;
  __m512 scale[kBlocks], shift[kBlocks], slope[kBlocks], after[kBlocks], bn_scale[kBlocks], bn_shift[kBlocks], sum[kBlocks];
#pragma GCC unroll 2
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const std::size_t at = c + b * kLanes;
    scale[b] = kAll || e.scale != nullptr ? _mm512_loadu_ps(e.scale + at) : one;
    shift[b] = shifts ? _mm512_loadu_ps(e.shift + at) : zero;
    after[b] = adds ? _mm512_loadu_ps(e.after + at) : zero;
    slope[b] = kAll || e.slope != nullptr ? _mm512_loadu_ps(e.slope + at) : one;
    bn_scale[b] = with_bits ? _mm512_loadu_ps(e.bn_scale + at) : one;
    bn_shift[b] = with_bits ? _mm512_loadu_ps(e.bn_shift + at) : zero;
    sum[b] = row_sums != nullptr ? _mm512_loadu_ps(row_sums + b * kLanes) : zero;
  }
  // Copies, since a store of bytes may change anything the compiler does not hold in a register.
  const std::size_t dot_stride = tile.dot_stride, bits_stride = steps.bits_stride;
  const std::size_t second_bits = tile.bits_bytes[1] - tile.bits_bytes[0];
  std::uint8_t* bits = with_bits ? reinterpret_cast<std::uint8_t*>(e.bits) + tile.pixel * bits_stride + tile.bits_bytes[0]
                                 : nullptr;
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
#pragma GCC unroll 2
    for (std::size_t b = 0; b < kBlocks; ++b) {
      const __m512i dots = _mm512_loadu_si512(tile_dots + b * kLanes);
      if (!kAll && wide_dots != nullptr) {
        _mm512_storeu_si512(wide_dots + static_cast<std::size_t>(i) * channels + b * kLanes, dots);
      }
      __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scale[b]);
      if (shifts) value = _mm512_add_ps(value, shift[b]);
      if (!act_last) value = prelu(value, slope[b]);
      if (kAll || skip != nullptr) {
        value = _mm512_add_ps(value, load_sixteen(skip + b * kLanes * value_bytes(skip_type), skip_type));
      }
      if (act_last) value = prelu(value, slope[b]);
      if (adds) value = _mm512_add_ps(value, after[b]);
      if (kAll || stream != nullptr) store_sixteen(stream + b * kLanes * value_bytes(stream_type), value, stream_type);
      sum[b] = _mm512_add_ps(sum[b], value);
      if (with_bits) {
        const __m512 normal = _mm512_add_ps(_mm512_mul_ps(bn_scale[b], value), bn_shift[b]);
        const std::uint16_t mask = static_cast<std::uint16_t>(_mm512_cmp_ps_mask(normal, zero, _CMP_GE_OQ));
        std::memcpy(bits + b * second_bits, &mask, sizeof mask);
      }
    }
    tile_dots += dot_stride;
    if (kAll || skip != nullptr) skip += skip_stride;
    if (kAll || stream != nullptr) stream += stream_stride;
    if (with_bits) bits += bits_stride;
  }
#pragma GCC unroll 2
  for (std::size_t b = 0; b < kBlocks && row_sums != nullptr; ++b) _mm512_storeu_ps(row_sums + b * kLanes, sum[b]);
}

template <int kBlocks, StreamType kSkip>
inline void finish_all_steps(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, const Tile32& tile) {
  switch (e.stream_type) {
    case StreamType::fp16:
      return finish_blocks<kBlocks, true, kSkip, StreamType::fp16>(shape, e, steps, tile);
    case StreamType::bf16:
      return finish_blocks<kBlocks, true, kSkip, StreamType::bf16>(shape, e, steps, tile);
    default:
      return finish_blocks<kBlocks, true, kSkip, StreamType::fp32>(shape, e, steps, tile);
  }
}

template <int kBlocks>
inline void finish_all_steps(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, const Tile32& tile) {
  switch (e.skip_type) {
    case StreamType::fp16:
      return finish_all_steps<kBlocks, StreamType::fp16>(shape, e, steps, tile);
    case StreamType::bf16:
      return finish_all_steps<kBlocks, StreamType::bf16>(shape, e, steps, tile);
    default:
      return finish_all_steps<kBlocks, StreamType::fp32>(shape, e, steps, tile);
  }
}

inline void finish_sixteen(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, const Tile32& tile) {
  // Sixteen channels fill two bytes of the bit plane only where groups of it start at such places.
  if (tile.channels == 16 && steps.sixteens && tile.channel % 16 == 0) {
    return steps.papers ? finish_all_steps<1>(shape, e, steps, tile) : finish_blocks<1, false>(shape, e, steps, tile);
  }
  for (int i = 0; i < tile.pixels; ++i) {
    for (int o = 0; o < tile.channels; ++o) {
      finish_one(shape, e, tile.pixel + static_cast<std::size_t>(i), tile.row, tile.channel + o,
                 tile.dots[static_cast<std::size_t>(i) * tile.dot_stride + static_cast<std::size_t>(o)]);
    }
  }
}

inline void finish_tile(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, Tile32 tile) {
  if (!steps.any) return;
  if (tile.channels == 32 && steps.papers && steps.sixteens && tile.channel % 16 == 0) {
    return finish_all_steps<2>(shape, e, steps, tile);
  }
  for (const int last = tile.channel + tile.channels; tile.channel < last; tile.channel += 16, tile.dots += 16) {
    tile.channels = last - tile.channel < 16 ? last - tile.channel : 16;
    finish_sixteen(shape, e, steps, tile);
    tile.bits_bytes[0] = tile.bits_bytes[1];
  }
}

}  // namespace
}  // namespace ebnet
