// The int8 layers on vectors of kLanes sums, written once. The file of a level gives, before it includes this:
//
//   EBNET_INT8_KERNELS                   the name of the level's table
//   Ints, Reals, Weights                 kLanes int32, float, or runs of kInt8Run weights
//   kLanes, kTilePixels, kTileBlocks     the sums of a tile stay in registers
//   kLoneBlocks                          blocks of a tile of one pixel
//   first_sums(conv)                     what sums start with: of bytes as they are, or less 128
//   input_run(p)                         the kInt8Run bytes at p, in every lane
//   dot(sums, inputs, weights)           each lane: + kInt8Run products
//   load_ints, load_weights, load_reals, store_reals   from and to memory of any alignment
//   to_reals, fused                      of sums; a * b + c rounded once
//   not_negative, negative_scaled        x < 0 ? 0 : x; x < 0 ? slope * x : x
//   clamped_bytes(reals, inverse, zero)  byte_of in each lane
//   store_bytes(to, ints[16 / kLanes])   16 lanes as 16 bytes
//   Sixteen, greater(a, b)               16 bytes; the greater of each two
#pragma once
#include <cstring>

#include "dense/int8_levels.h"

namespace ebnet {
namespace {

using std::size_t;

inline size_t size(int value) { return static_cast<size_t>(value); }

constexpr int kVectors = kInt8Block / kLanes;

// One block's results of kPixels pixels. What is the same for all of them is loaded first: a store of bytes may be to
// anywhere, as far as the compiler knows.
template <int kPixels, int kAll, bool kBytes>
inline __attribute__((always_inline)) void finish(const Int8Conv& conv, Ints (&sums)[kPixels][kAll], int first,
                                                  int channel, const Int8Output& output, size_t pixel) {
  Reals reals[kPixels][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Reals multiplier = load_reals(conv.multiplier.as<float>() + channel + v * kLanes);
    const Reals shift = load_reals(conv.shift.as<float>() + channel + v * kLanes);
    const Reals slope = load_reals(conv.slope.as<float>() + channel + v * kLanes);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) reals[p][v] = fused(to_reals(sums[p][first + v]), multiplier, shift);
    if (conv.activation == Activation::relu) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) reals[p][v] = not_negative(reals[p][v]);
    } else if (conv.activation == Activation::prelu) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) reals[p][v] = negative_scaled(reals[p][v], slope);
    }
  }
  const int channels = conv.shape.out_channels - channel;
  const bool whole = channels >= kInt8Block;
  const size_t stride = whole ? output.stride : size(kInt8Block);
  if constexpr (kBytes) {
    const float inverse = 1.0f / output.code.step;
    const auto zero = static_cast<float>(output.code.zero);
    std::uint8_t last[kPixels * kInt8Block];
    std::uint8_t* const results = output.bytes + pixel * output.stride + channel;
    std::uint8_t* const to = whole ? results : last;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      Ints bytes[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) bytes[v] = clamped_bytes(reals[p][v], inverse, zero);
      store_bytes(to + size(p) * stride, bytes);
    }
    for (int p = 0; p < kPixels && !whole; ++p) {
      std::memcpy(results + size(p) * output.stride, last + p * kInt8Block, size(channels));
    }
  } else {
    float last[kPixels * kInt8Block];
    float* const results = output.reals + pixel * output.stride + channel;
    float* const to = whole ? results : last;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) store_reals(to + size(p) * stride + v * kLanes, reals[p][v]);
    }
    for (int p = 0; p < kPixels && !whole; ++p) {
      std::memcpy(results + size(p) * output.stride, last + p * kInt8Block, size(channels) * sizeof(float));
    }
  }
}

// kPixels outputs of kBlocks blocks of channels.
template <int kPixels, int kBlocks, bool kBytes>
__attribute__((noinline)) void tile(const Int8Conv& conv, const Int8Window& window, int block,
                                    const Int8Output& output, size_t pixel) {
  constexpr int kAll = kBlocks * kVectors;
  const size_t block_bytes = int8_block_bytes(conv);
  const size_t pixel_step = window.pixel_step;
  Ints sums[kPixels][kAll];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
    for (int v = 0; v < kAll; ++v) sums[p][v] = load_ints(first_sums(conv) + block * kInt8Block + v * kLanes);
  }
  const std::uint8_t* row = window.input + pixel * pixel_step;
  const std::uint8_t* weights = conv.weights.data() + size(block) * block_bytes;
  for (int ky = conv.shape.kernel_h; ky > 0; --ky, row += window.row_step) {
    const std::uint8_t* in = row;
    for (int run = conv.row_runs; run > 0; --run, in += kInt8Run, weights += kInt8Block * kInt8Run) {
      Weights w[kAll];
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v) {
        w[v] = load_weights(weights + size(v / kVectors) * block_bytes + v % kVectors * kLanes * kInt8Run);
      }
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const auto inputs = input_run(in + size(p) * pixel_step);
#pragma GCC unroll 8
        for (int v = 0; v < kAll; ++v) sums[p][v] = dot(sums[p][v], inputs, w[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    finish<kPixels, kAll, kBytes>(conv, sums, b * kVectors, (block + b) * kInt8Block, output, pixel);
  }
}

// A tile of `pixels` pixels, at most kPixels.
template <int kPixels, int kBlocks, bool kBytes>
inline void tile_of(int pixels, const Int8Conv& conv, const Int8Window& window, int block, const Int8Output& output,
                    size_t pixel) {
  if constexpr (kPixels > 1) {
    if (pixels < kPixels) return tile_of<kPixels - 1, kBlocks, kBytes>(pixels, conv, window, block, output, pixel);
  }
  tile<kPixels, kBlocks, kBytes>(conv, window, block, output, pixel);
}

// All pixels in as few tiles as will do, of sizes as even as can be; a tile's input stays in L1 for all blocks.
template <bool kBytes>
void conv_pixels(const Int8Conv& conv, const Int8Window& window, int pixels, int block_begin, int block_end,
                 const Int8Output& output) {
  const int tiles = (pixels + kTilePixels - 1) / kTilePixels;
  size_t pixel = 0;
  for (int i = 0; i < tiles; ++i) {
    const int some = pixels / tiles + (i < pixels % tiles ? 1 : 0);
    int block = block_begin;
    // A tile of one pixel has no other sums to hide behind than those of more blocks.
    for (; some == 1 && block + kLoneBlocks <= block_end; block += kLoneBlocks) {
      tile<1, kLoneBlocks, kBytes>(conv, window, block, output, pixel);
    }
    if constexpr (kTileBlocks == 2) {
      for (; block + 2 <= block_end; block += 2) {
        tile_of<kTilePixels, 2, kBytes>(some, conv, window, block, output, pixel);
      }
    }
    for (; block < block_end; ++block) tile_of<kTilePixels, 1, kBytes>(some, conv, window, block, output, pixel);
    pixel += size(some);
  }
}

void conv(const Int8Conv& conv, const Int8Window& window, int pixels, int block_begin, int block_end,
          const Int8Output& output) {
  if (output.bytes != nullptr) {
    conv_pixels<true>(conv, window, pixels, block_begin, block_end, output);
  } else {
    conv_pixels<false>(conv, window, pixels, block_begin, block_end, output);
  }
}

void to_bytes(const float* input, size_t input_stride, int pixels, int channels, const float* inverse,
              const float* zero, std::uint8_t* output, size_t output_stride) {
  for (int p = 0; p < pixels; ++p, input += input_stride, output += output_stride) {
    int c = 0;
    for (; c + kInt8Block <= channels; c += kInt8Block) {
      Ints bytes[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int at = c + v * kLanes;
        bytes[v] = clamped_bytes(load_reals(input + at), load_reals(inverse + at), load_reals(zero + at));
      }
      store_bytes(output + c, bytes);
    }
    for (; c < channels; ++c) output[c] = byte_of(input[c], inverse[c], zero[c]);
  }
}

// One output pixel's channels [c, c + 16 * kTogether): the greatest of the window's bytes.
template <int kTogether>
inline void window_maximum(const std::uint8_t* window, size_t row_step, size_t pixel_step, int rows, int columns,
                           std::uint8_t* output) {
  Sixteen greatest[kTogether] = {};
  for (int y = 0; y < rows; ++y, window += row_step) {
    const std::uint8_t* at = window;
    for (int x = 0; x < columns; ++x, at += pixel_step) {
#pragma GCC unroll 4
      for (int v = 0; v < kTogether; ++v) {
        Sixteen bytes;
        std::memcpy(&bytes, at + size(v) * sizeof bytes, sizeof bytes);
        greatest[v] = greater(greatest[v], bytes);
      }
    }
  }
  std::memcpy(output, greatest, sizeof greatest);
}

void max_pool(const PoolShape& s, const std::uint8_t* input, size_t input_stride, std::uint8_t* output,
              size_t output_stride, int row_begin, int row_end) {
  const int out_w = s.out_w();
  const size_t row_step = size(s.in_w) * input_stride;
  for (int y = row_begin; y < row_end; ++y) {
    const int in_y = y * s.stride - s.pad;
    const int top = in_y < 0 ? 0 : in_y;
    const int rows = (in_y + s.kernel < s.in_h ? in_y + s.kernel : s.in_h) - top;
    for (int x = 0; x < out_w; ++x) {
      const int in_x = x * s.stride - s.pad;
      const int left = in_x < 0 ? 0 : in_x;
      const int columns = (in_x + s.kernel < s.in_w ? in_x + s.kernel : s.in_w) - left;
      const std::uint8_t* window = input + size(top) * row_step + size(left) * input_stride;
      std::uint8_t* out = output + (size(y) * size(out_w) + size(x)) * output_stride;
      int c = 0;
      for (; c + 32 <= s.channels; c += 32) window_maximum<2>(window + c, row_step, input_stride, rows, columns, out + c);
      for (; c + 16 <= s.channels; c += 16) window_maximum<1>(window + c, row_step, input_stride, rows, columns, out + c);
      for (; c < s.channels; ++c) {
        std::uint8_t greatest = 0;
        for (int ky = 0; ky < rows; ++ky) {
          for (int kx = 0; kx < columns; ++kx) {
            const std::uint8_t byte = window[size(ky) * row_step + size(kx) * input_stride + size(c)];
            greatest = byte > greatest ? byte : greatest;
          }
        }
        out[c] = greatest;
      }
    }
  }
}

}  // namespace

const Int8Kernels EBNET_INT8_KERNELS = {conv, to_bytes, max_pool};

}  // namespace ebnet
