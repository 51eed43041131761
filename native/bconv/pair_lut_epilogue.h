// The fused epilogue on kFloats channels a vector; the arithmetic is that of epilogue_scalar.h, operation by operation,
// but for two things that change no bit of a result:
//
// From counts to floats. A tile holds c, twice the differing bits, in 16 bits, and dot = start - c. A float with the
// bits 0x4B00cccc is 2^23 + c, so interleaving c with 0x4B00 converts it, and (2^23 + start) - (2^23 + c) is the dot
// product: one subtraction, exact, for both steps.
//
// From floats to bits. x >= 0 is the inverse of x's sign bit unless x is -0.0. x = bn_scale * r + bn_shift is -0.0 only
// where bn_shift is, so a bn_shift to which +0.0 was added makes the comparison a matter of collecting signs, where an
// instruction set has a word for that.
#pragma once
#include <type_traits>

#include "bconv/epilogue_scalar.h"
#include "bconv/pair_lut_layout.h"
#include "bconv/stream_vectors.h"
#include "bits/bit_runs.h"

namespace ebnet::pair_lut {
namespace {

using namespace vectors;

constexpr float kTwoTo23 = 8388608.0f;

constexpr int kTogether = 16;  // channels of a whole block that are finished together

// Whether every block is whole and wants every step, as in the body of a network.
inline bool is_whole(const ConvShape& shape, const Epilogue& e) {
  return e.is_papers_unit() && e.bits_per_group % kTogether == 0 && shape.out_per_group() % kTogether == 0;
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
    bits_stride = bit_words_per_pixel(shape.out_channels, e.bits_per_group);
    for (int eight = 0; 8 * eight < count; ++eight) {
      runs[eight] = BitRuns<8>(first + 8 * eight, count - 8 * eight < 8 ? count - 8 * eight : 8, e.bits_per_group);
    }
  }

  int channel = 0, channels = 0;
  std::size_t bits_stride = 0;  // words from pixel to pixel
  BitRuns<8> runs[kLanes / 8];  // of eight channels each
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
// of few channels are no pattern a hardware prefetcher follows.
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

// 2^23 + count is made a dot product by 2^23 + the dot product without any.
constexpr std::uint16_t kUpperOfTwoTo23 = 0x4B00;

EBNET_INLINE Floats prelu(Floats value, Floats slope) { return choose_by_sign(value, slope * value, value); }

// kTogether channels from the block's channel `offset` on with every step of the epilogue: all that is the same for their
// pixels fits the registers of AVX2, ten of sixteen, and loads are what the CPU has least of.
template <typename Skip, typename Result>
inline void finish_whole(const ConvShape& shape, const Epilogue& e, const ChannelBlock& block, const Tile& tile,
                         int offset) {
  constexpr int kVectors = kTogether / kFloats;
  const std::size_t c = static_cast<std::size_t>(block.channel + offset);
  float* const row_sums = e.row_sums + tile.row * static_cast<std::size_t>(shape.out_channels) + c;
  Floats scale[kVectors], slope[kVectors], bn_scale[kVectors], bn_shift[kVectors], sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const std::size_t at = c + static_cast<std::size_t>(v * kFloats);
    scale[v] = kept(load<Floats>(e.scale + at));
    slope[v] = kept(load<Floats>(e.slope + at));
    bn_scale[v] = kept(load<Floats>(e.bn_scale + at));
    bn_shift[v] = kept(load<Floats>(e.bn_shift + at) + Floats{});
    sums[v] = tile.begins_row ? Floats{} : load<Floats>(row_sums + v * kFloats);
  }
  const std::size_t skip_step = e.skip_stride * Skip::kBytes, stream_step = e.stream_stride * Result::kBytes;
  const std::size_t bits_step = block.bits_stride * sizeof(std::uint64_t);
  const auto* skip = static_cast<const std::uint8_t*>(e.skip) + tile.pixel * skip_step + c * Skip::kBytes;
  auto* stream = static_cast<std::uint8_t*>(e.stream) + tile.pixel * stream_step + c * Result::kBytes;
  auto* bits = reinterpret_cast<std::uint8_t*>(e.bits) + block.runs[offset / 8].first_byte() + tile.pixel * bits_step;
  const std::uint16_t* twice = tile.twice + offset;
  const float* starts = tile.starts;
  for (int left = tile.pixels; left > 0; --left, twice += kLanes, ++starts) {
    const Floats start = all_floats(*starts);
    Floats values[kVectors], normal[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      values[v] = start - under(load<Words>(twice + v / 2 * (kLanes / 2)), kUpperOfTwoTo23, v % 2 == 1);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) values[v] = prelu(values[v] * scale[v], slope[v]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      values[v] += Skip::read(skip + v * kFloats * Skip::kBytes);
      Result::write(stream + v * kFloats * Result::kBytes, values[v]);
      sums[v] += values[v];
      normal[v] = bn_scale[v] * values[v] + bn_shift[v];
    }
    const std::uint16_t signs = not_negative(normal);
    std::memcpy(bits, &signs, sizeof signs);
    skip += skip_step;
    stream += stream_step;
    bits += bits_step;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store(row_sums + v * kFloats, sums[v]);
}

// Up to eight channels from the block's channel `offset` on, a multiple of eight, with those steps that are wanted;
// kWhole: all eight, whose loads and stores need not be kept to them.
template <typename Skip, typename Result, bool kWhole>
inline void finish_eight(const ConvShape& shape, const Epilogue& e, const ChannelBlock& block, const Tile& tile,
                         int offset) {
  const std::size_t c = static_cast<std::size_t>(block.channel + offset);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  constexpr int kVectors = 8 / kFloats;
  const auto lanes = [&](int v) { return kWhole ? kFloats : block.channels - offset - v * kFloats; };
  const Floats one = all_floats(1.0f);
  Floats scale[kVectors], shift[kVectors], slope[kVectors], after[kVectors];
  Floats bn_scale[kVectors], bn_shift[kVectors], sums[kVectors];
  float* row_sums = e.row_sums != nullptr ? e.row_sums + tile.row * channels + c : nullptr;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const std::size_t at = c + static_cast<std::size_t>(v * kFloats);
    const auto parameters = [&](const float* values, Floats otherwise) {
      return values != nullptr ? load_first<kWhole>(values + at, lanes(v)) : otherwise;
    };
    scale[v] = parameters(e.scale, one);
    shift[v] = parameters(e.shift, Floats{});
    slope[v] = parameters(e.slope, one);
    after[v] = parameters(e.after, Floats{});
    bn_scale[v] = parameters(e.bits != nullptr ? e.bn_scale : nullptr, one);
    bn_shift[v] = parameters(e.bits != nullptr ? e.bn_shift : nullptr, Floats{}) + Floats{};
    sums[v] = row_sums != nullptr ? load_first<kWhole>(row_sums + v * kFloats, lanes(v)) : Floats{};
  }
  const auto* skip = static_cast<const std::uint8_t*>(e.skip);
  auto* stream = static_cast<std::uint8_t*>(e.stream);
  const BitRuns<8>& runs = block.runs[offset / 8];
  std::uint8_t* const byte =
      kWhole && runs.are_bytes(8) ? reinterpret_cast<std::uint8_t*>(e.bits) + runs.first_byte() : nullptr;
  for (int i = 0; i < tile.pixels; ++i) {
    const std::size_t pixel = tile.pixel + static_cast<std::size_t>(i);
    Floats normal[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int channel = offset + v * kFloats;  // of the block
      const std::size_t at = c + static_cast<std::size_t>(v * kFloats);
      const Words counts = load<Words>(tile.twice + i * kLanes + channel / (kLanes / 2) * (kLanes / 2));
      const bool upper = channel / kFloats % 2 == 1;
      const Floats dot = all_floats(tile.starts[i]) -
                         (upper ? under(counts, kUpperOfTwoTo23, true) : under(counts, kUpperOfTwoTo23, false));
      if (e.dots != nullptr) {
        store_first<kWhole>(e.dots + pixel * channels + at, reinterpret_cast<Floats>(rounded(dot)), lanes(v));
      }
      Floats value = dot * scale[v];
      if (e.shift != nullptr) value += shift[v];
      if (!e.act_last) value = prelu(value, slope[v]);
      if (skip != nullptr) {
        value += Skip::template read_first<kWhole>(skip + (pixel * e.skip_stride + at) * Skip::kBytes, lanes(v));
      }
      if (e.act_last) value = prelu(value, slope[v]);
      if (e.after != nullptr) value += after[v];
      if (stream != nullptr) {
        Result::template write_first<kWhole>(stream + (pixel * e.stream_stride + at) * Result::kBytes, value, lanes(v));
      }
      sums[v] += value;
      normal[v] = bn_scale[v] * value + bn_shift[v];
    }
    if (e.bits == nullptr) continue;
    if (byte != nullptr) {
      byte[pixel * block.bits_stride * sizeof(std::uint64_t)] = not_negative_eight(normal);
    } else {
      runs.put(e.bits + pixel * block.bits_stride, not_negative_eight(normal));
    }
  }
  if (row_sums == nullptr) return;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) store_first<kWhole>(row_sums + v * kFloats, sums[v], lanes(v));
}

// `whole` as is_whole says.
inline void finish_tile(const ConvShape& shape, const Epilogue& e, bool whole, const ChannelBlock& block,
                        const Tile& tile) {
  if (e.stream == nullptr && e.bits == nullptr && e.row_sums == nullptr && e.dots == nullptr) return;
  with_streams(e.skip_type, e.stream_type, [&](auto skip, auto result) {
    using Skip = decltype(skip);
    using Result = decltype(result);
    for (int offset = 0; whole && offset < block.channels; offset += kTogether) {
      finish_whole<Skip, Result>(shape, e, block, tile, offset);
    }
    if (whole) return;
    for (int offset = 0; offset < block.channels; offset += 8) {
      block.channels - offset >= 8 ? finish_eight<Skip, Result, true>(shape, e, block, tile, offset)
                                   : finish_eight<Skip, Result, false>(shape, e, block, tile, offset);
    }
  });
}

}  // namespace
}  // namespace ebnet::pair_lut
