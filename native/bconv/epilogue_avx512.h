// The fused epilogue on sixteen channels a vector; the arithmetic is that of epilogue_scalar.h, operation by operation.
// Where there are fewer, a mask keeps loads and stores to them.
#pragma once
#include "bconv/avx512_intrinsics.h"
#include "bconv/epilogue_scalar.h"
#include "bits/bit_runs.h"

namespace ebnet {
namespace {

// What the tiles of a run have in common, found once: divisions are slow.
struct EpilogueSteps {
  EpilogueSteps(const ConvShape& shape, const Epilogue& e)
      : any(e.stream != nullptr || e.bits != nullptr || e.row_sums != nullptr || e.dots != nullptr),
        papers(e.is_papers_unit()),
        bits_stride(e.bits == nullptr ? 0 : bit_words_per_pixel(shape.out_channels, e.bits_per_group) * sizeof(std::uint64_t)) {}

  bool any;                 // step is wanted
  bool papers;              // as Epilogue says
  std::size_t bits_stride;  // bytes from pixel to pixel of the bit plane
};

// Sixteen output channels from `channel` on, or fewer, and where their bits go.
struct Sixteen {
  Sixteen() = default;
  EBNET_INLINE Sixteen(const Epilogue& e, int first, int count)
      : channel(first),
        lanes(static_cast<__mmask16>((1u << count) - 1)),
        runs(e.bits == nullptr ? BitRuns<16>() : BitRuns<16>(first, count, e.bits_per_group)),
        whole(count == 16 && runs.are_bytes(count)) {}

  int channel = 0;
  __mmask16 lanes = 0;
  BitRuns<16> runs;
  bool whole = false;  // all sixteen, and their bits are two bytes of the bit plane
};

// Up to 32 output channels from `channel` on.
struct ChannelBlocks {
  ChannelBlocks() = default;
  EBNET_INLINE ChannelBlocks(const Epilogue& e, int first, int count) : channel(first), channels(count) {
    for (int b = 0; 16 * b < count; ++b) {
      blocks[b] = Sixteen(e, first + 16 * b, count - 16 * b < 16 ? count - 16 * b : 16);
    }
  }

  int channel = 0, channels = 0;
  Sixteen blocks[2];
};

// A tile: `pixels` neighbours in one row, [pixel][dot_stride] dot products.
struct Tile32 {
  const std::int32_t* dots;
  std::size_t dot_stride;
  std::size_t pixel, row;
  int pixels;
};

// Asks for the tile's part of skip and stream before its dot products are computed: they are larger than L1, and slices
// of a few channels are no pattern a hardware prefetcher follows.
inline void prefetch_tile(const Epilogue& e, std::size_t pixel, int pixels, const ChannelBlocks& blocks) {
  constexpr std::size_t kLine = 64;
  const auto lines = [&](const void* values, std::size_t stride, StreamType type, auto prefetch) {
    const std::size_t bytes = static_cast<std::size_t>(blocks.channels) * value_bytes(type);
    const char* from =
        static_cast<const char*>(values) + (pixel * stride + static_cast<std::size_t>(blocks.channel)) * value_bytes(type);
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

// Sixteen values; with kWhole not, only those of the lanes are read or written, and the others are 0.
template <bool kWhole>
inline __m512 load_floats(const void* values, __mmask16 lanes) {
  return kWhole ? _mm512_loadu_ps(values) : _mm512_maskz_loadu_ps(lanes, values);
}

// The same of a stream, widened.
template <bool kWhole>
inline __m512 load_sixteen(const void* values, StreamType type, __mmask16 lanes) {
  if (type == StreamType::fp32) return load_floats<kWhole>(values, lanes);
  const __m256i narrow =
      kWhole ? _mm256_loadu_si256(static_cast<const __m256i*>(values)) : _mm256_maskz_loadu_epi16(lanes, values);
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

template <bool kWhole>
inline void store_floats(void* to, __m512 values, __mmask16 lanes) {
  kWhole ? _mm512_storeu_ps(to, values) : _mm512_mask_storeu_ps(to, lanes, values);
}

template <bool kWhole>
inline void store_sixteen(void* to, __m512 values, StreamType type, __mmask16 lanes) {
  if (type == StreamType::fp32) return store_floats<kWhole>(to, values, lanes);
  const __m256i narrow = type == StreamType::fp16 ? _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT)
                                                  : round_to_bfloat16(values);
  kWhole ? _mm256_storeu_si256(static_cast<__m256i*>(to), narrow) : _mm256_mask_storeu_epi16(to, lanes, narrow);
}

inline __m512 prelu(__m512 values, __m512 slope) {
  return _mm512_mask_mul_ps(values, _mm512_movepi32_mask(_mm512_castps_si512(values)), slope, values);
}

// kBlocks of 16 channels, all of which are whole where kWhole. kAll: every step of the paper's unit is wanted and no
// other, so no step is tested for in the loop, nor are the types kSkip and kStream, which otherwise stand for nothing.
template <int kBlocks, bool kWhole, bool kAll, StreamType kSkip = StreamType::fp32, StreamType kStream = StreamType::fp32>
inline void finish_blocks(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, const Sixteen* blocks,
                          const Tile32& tile) {
  constexpr std::size_t kLanes = 16;
  static_assert(kWhole || kBlocks == 1, "one mask");
  const __mmask16 lanes = blocks->lanes;
  const std::size_t c = static_cast<std::size_t>(blocks->channel);
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
    scale[b] = kAll || e.scale != nullptr ? load_floats<kWhole>(e.scale + at, lanes) : one;
    shift[b] = shifts ? load_floats<kWhole>(e.shift + at, lanes) : zero;
    after[b] = adds ? load_floats<kWhole>(e.after + at, lanes) : zero;
    slope[b] = kAll || e.slope != nullptr ? load_floats<kWhole>(e.slope + at, lanes) : one;
    bn_scale[b] = with_bits ? load_floats<kWhole>(e.bn_scale + at, lanes) : one;
    bn_shift[b] = with_bits ? load_floats<kWhole>(e.bn_shift + at, lanes) : zero;
    sum[b] = row_sums != nullptr ? load_floats<kWhole>(row_sums + b * kLanes, lanes) : zero;
  }
  // Copies, since a store of bytes may change anything the compiler does not hold in a register.
  const std::size_t dot_stride = tile.dot_stride, bits_stride = steps.bits_stride;
  std::size_t bits_bytes[kBlocks];
#pragma GCC unroll 2
  for (std::size_t b = 0; b < kBlocks; ++b) bits_bytes[b] = kWhole ? blocks[b].runs.first_byte() : 0;
  std::uint8_t* bits = with_bits ? reinterpret_cast<std::uint8_t*>(e.bits) + tile.pixel * bits_stride : nullptr;
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
        store_floats<kWhole>(wide_dots + static_cast<std::size_t>(i) * channels + b * kLanes, _mm512_castsi512_ps(dots),
                             lanes);
      }
      __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scale[b]);
      if (shifts) value = _mm512_add_ps(value, shift[b]);
      if (!act_last) value = prelu(value, slope[b]);
      if (kAll || skip != nullptr) {
        value = _mm512_add_ps(value, load_sixteen<kWhole>(skip + b * kLanes * value_bytes(skip_type), skip_type, lanes));
      }
      if (act_last) value = prelu(value, slope[b]);
      if (adds) value = _mm512_add_ps(value, after[b]);
      if (kAll || stream != nullptr) {
        store_sixteen<kWhole>(stream + b * kLanes * value_bytes(stream_type), value, stream_type, lanes);
      }
      sum[b] = _mm512_add_ps(sum[b], value);
      if (with_bits) {
        const __m512 normal = _mm512_add_ps(_mm512_mul_ps(bn_scale[b], value), bn_shift[b]);
        const std::uint16_t mask = static_cast<std::uint16_t>(_mm512_cmp_ps_mask(normal, zero, _CMP_GE_OQ));
        if (kWhole) {
          std::memcpy(bits + bits_bytes[b], &mask, sizeof mask);
        } else {
          blocks->runs.put(reinterpret_cast<std::uint64_t*>(bits), mask);
        }
      }
    }
    tile_dots += dot_stride;
    if (kAll || skip != nullptr) skip += skip_stride;
    if (kAll || stream != nullptr) stream += stream_stride;
    if (with_bits) bits += bits_stride;
  }
#pragma GCC unroll 2
  for (std::size_t b = 0; b < kBlocks && row_sums != nullptr; ++b) {
    store_floats<kWhole>(row_sums + b * kLanes, sum[b], lanes);
  }
}

template <int kBlocks, bool kWhole, StreamType kSkip>
inline void finish_all_steps(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps,
                             const Sixteen* blocks, const Tile32& tile) {
  switch (e.stream_type) {
    case StreamType::fp16:
      return finish_blocks<kBlocks, kWhole, true, kSkip, StreamType::fp16>(shape, e, steps, blocks, tile);
    case StreamType::bf16:
      return finish_blocks<kBlocks, kWhole, true, kSkip, StreamType::bf16>(shape, e, steps, blocks, tile);
    default:
      return finish_blocks<kBlocks, kWhole, true, kSkip, StreamType::fp32>(shape, e, steps, blocks, tile);
  }
}

template <int kBlocks, bool kWhole>
inline void finish_steps(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps, const Sixteen* blocks,
                         const Tile32& tile) {
  if (!steps.papers) return finish_blocks<kBlocks, kWhole, false>(shape, e, steps, blocks, tile);
  switch (e.skip_type) {
    case StreamType::fp16:
      return finish_all_steps<kBlocks, kWhole, StreamType::fp16>(shape, e, steps, blocks, tile);
    case StreamType::bf16:
      return finish_all_steps<kBlocks, kWhole, StreamType::bf16>(shape, e, steps, blocks, tile);
    default:
      return finish_all_steps<kBlocks, kWhole, StreamType::fp32>(shape, e, steps, blocks, tile);
  }
}

inline void finish_tile(const ConvShape& shape, const Epilogue& e, const EpilogueSteps& steps,
                        const ChannelBlocks& channels, Tile32 tile) {
  if (!steps.any) return;
  const Sixteen* blocks = channels.blocks;
  if (blocks[0].whole && blocks[1].whole) return finish_steps<2, true>(shape, e, steps, blocks, tile);
  for (int left = channels.channels; left > 0; left -= 16, ++blocks, tile.dots += 16) {
    blocks->whole ? finish_steps<1, true>(shape, e, steps, blocks, tile)
                  : finish_steps<1, false>(shape, e, steps, blocks, tile);
  }
}

}  // namespace
}  // namespace ebnet
