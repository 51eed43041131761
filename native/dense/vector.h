// The real-valued kernels on vectors of EBNET_DENSE_LANES floats, written once with the compiler's vector types and
// compiled for each level with its flags. Pixels are channels-last, so lanes are channels and nothing is summed across
// them except in `linear`.
#pragma once
#include <cstring>
#include <type_traits>

#include "base/lanes.h"
#include "dense/levels.h"
#include "dense/vector_pools.h"

#ifdef EBNET_X86_64
#include <immintrin.h>
#else
#include "base/vectors/here.h"
#endif

namespace ebnet {
namespace {

inline Vector load_widened(const float* from) { return load(from); }

inline Vector load_widened(const Half* from) {
  Vector value;
#if defined(__AVX512F__)
  __m256i halves;
  std::memcpy(&halves, from, sizeof halves);
  value = reinterpret_cast<Vector>(_mm512_maskz_cvtph_ps(0xFFFF, halves));
#elif defined(EBNET_X86_64)
  // Eight at a time; sixteen lanes without AVX-512 are those of the tests.
  for (int first = 0; first < kLanes; first += 8) {
    __m128i halves;
    std::memcpy(&halves, from + first, sizeof halves);
    const __m256 eight = _mm256_cvtph_ps(halves);
    std::memcpy(reinterpret_cast<char*>(&value) + sizeof(float) * static_cast<std::size_t>(first), &eight, sizeof eight);
  }
#else
  value = reinterpret_cast<Vector>(vectors::load_halves(from));
#endif
  return value;
}

inline float widened(float value) { return value; }
inline float widened(Half value) { return half_to_float(value); }

// A convolution tile keeps kTilePixels x 16 sums in registers: 12 of 16 vector registers with 8 lanes, 14 of 32 with 16,
// 24 of NEON's 32 with 4; a browser may have only 16 to put WebAssembly's into.
constexpr int kVectors = kDenseBlock / kLanes;
#ifdef EBNET_SIMD128
constexpr int kTilePixels = 2;
#else
constexpr int kTilePixels = kLanes == 16 ? 14 : 6;
#endif

// Neighbouring outputs that see the same taps of the kernel, as runs of contiguous inputs and weights: one for each
// kernel row where pixels are contiguous too, else one for each tap.
struct Runs {
  const float* input;     // of the first pixel's first run
  const float* weights;   // of the first block's first run
  size_t pixel_step;      // floats from pixel to pixel of the input
  size_t row_step, row_weights;  // from kernel row to kernel row
  size_t run_step, run_weights;  // from run to run of a kernel row
  int rows, row_runs, run;
};

Runs runs_of(const ConvShape& s, TapRange rows, TapRange columns, const float* input, long origin, size_t input_stride,
             const float* weights) {
  const bool joined = s.dilation_w == 1 && input_stride == size(s.in_channels);
  const int taps = columns.end - columns.begin;
  const size_t tap_weights = size(s.in_channels) * size(kDenseBlock);
  Runs runs;
  runs.input = input + (origin + static_cast<long>(rows.begin * s.dilation_h) * s.in_w + columns.begin * s.dilation_w) *
                           static_cast<long>(input_stride);
  runs.weights = weights + size(rows.begin * s.kernel_w + columns.begin) * tap_weights;
  runs.pixel_step = size(s.stride_w) * input_stride;
  runs.row_step = size(s.dilation_h) * size(s.in_w) * input_stride;
  runs.row_weights = size(s.kernel_w) * tap_weights;
  runs.run_step = size(s.dilation_w) * input_stride;
  runs.run_weights = tap_weights;
  runs.rows = rows.end - rows.begin;
  runs.row_runs = joined ? 1 : taps;
  runs.run = joined ? taps * s.in_channels : s.in_channels;
  return runs;
}

// kPixels outputs of one block of channels.
template <int kPixels>
inline __attribute__((always_inline)) void conv_tile(const DenseConv& conv, const Runs& runs, const float* input,
                                                     const float* block_weights, int channel, float* output,
                                                     size_t output_stride) {
  const size_t pixel_step = runs.pixel_step;
  Vector sums[kPixels][kVectors];
#pragma GCC unroll 14
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[p][v] = load(conv.bias.as<float>() + channel + v * kLanes);
  }
  for (int row = runs.rows; row > 0; --row, input += runs.row_step, block_weights += runs.row_weights) {
    const float* run_input = input;
    const float* run_weights = block_weights;
    for (int i = runs.row_runs; i > 0; --i, run_input += runs.run_step, run_weights += runs.run_weights) {
      const float* in = run_input;
      const float* weights = run_weights;
      for (int c = runs.run; c > 0; --c, ++in, weights += kDenseBlock) {
        Vector w[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * kLanes);
#pragma GCC unroll 14
        for (int p = 0; p < kPixels; ++p) {
          const Vector a = splat(in[size(p) * pixel_step]);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sums[p][v] += a * w[v];
        }
      }
    }
  }
  if (conv.activation == Activation::relu) {
#pragma GCC unroll 14
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[p][v] = sums[p][v] < Vector{} ? Vector{} : sums[p][v];
    }
  } else if (conv.activation == Activation::prelu) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vector slope = load(conv.slope.as<float>() + channel + v * kLanes);
#pragma GCC unroll 14
      for (int p = 0; p < kPixels; ++p) sums[p][v] = sums[p][v] < Vector{} ? slope * sums[p][v] : sums[p][v];
    }
  }
  // The sums stay in registers only where nothing reaches for one of them by a variable.
  const int channels = conv.shape.out_channels - channel;
  const bool whole = channels >= kDenseBlock;
  float last[kPixels][kDenseBlock];
  float* const to = whole ? output + channel : last[0];
  const size_t step = whole ? output_stride : size(kDenseBlock);
#pragma GCC unroll 14
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(to + size(p) * step + v * kLanes, sums[p][v]);
  }
  for (int p = 0; p < kPixels && !whole; ++p) {
    std::memcpy(output + size(p) * output_stride + channel, last[p], size(channels) * sizeof(float));
  }
}

// All given blocks of `tiles` tiles of kPixels neighbours. A tile's input stays in L1 for all blocks.
template <int kPixels>
__attribute__((noinline)) void conv_tiles(int tiles, const DenseConv& conv, const DenseBlocks& blocks,
                                          const Runs& runs, const float* input, float* output, size_t output_stride) {
  const size_t block_size = size(conv.shape.taps()) * size(conv.shape.in_channels) * size(kDenseBlock);
  for (; tiles > 0; --tiles, input += kPixels * runs.pixel_step, output += kPixels * output_stride) {
    const float* weights = runs.weights;
    for (int block = blocks.begin; block < blocks.end; ++block, weights += block_size) {
      conv_tile<kPixels>(conv, runs, input, weights, block * kDenseBlock, output, output_stride);
    }
  }
}

// conv_tiles of `pixels` pixels, at most kPixels.
template <int kPixels>
void conv_tiles_of(int pixels, int tiles, const DenseConv& conv, const DenseBlocks& blocks, const Runs& runs,
                   const float* input, float* output, size_t output_stride) {
  if constexpr (kPixels > 1) {
    if (pixels < kPixels) {
      return conv_tiles_of<kPixels - 1>(pixels, tiles, conv, blocks, runs, input, output, output_stride);
    }
  }
  conv_tiles<kPixels>(tiles, conv, blocks, runs, input, output, output_stride);
}

// All given blocks of `pixels` neighbours, in as few tiles as will do, of sizes as even as can be: a tile of few pixels
// waits for its own additions.
void conv_pixels(const DenseConv& conv, const DenseBlocks& blocks, int pixels, const Runs& runs, float* output,
                 size_t output_stride) {
  if (pixels == 0) return;
  const int tiles = (pixels + kTilePixels - 1) / kTilePixels;
  const int fewer = pixels / tiles, longer_tiles = pixels % tiles;
  const size_t in_longer = size(longer_tiles * (fewer + 1));
  conv_tiles_of<kTilePixels>(fewer + 1, longer_tiles, conv, blocks, runs, runs.input, output, output_stride);
  conv_tiles_of<kTilePixels>(fewer, tiles - longer_tiles, conv, blocks, runs,
                             runs.input + in_longer * runs.pixel_step, output + in_longer * output_stride,
                             output_stride);
}

void conv(const DenseConv& conv, const ConvShape& s, const DenseBlocks& blocks, const float* input, size_t input_stride,
          float* output, size_t output_stride, int row_begin, int row_end) {
  const int out_w = s.out_w();
  // A 1x1 convolution with stride 1 does not see rows: all its pixels are one line.
  const bool flat = s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0;
  if (flat) {
    const int pixel = row_begin * out_w;
    const Runs runs = runs_of(s, {0, 1}, {0, 1}, input, pixel, input_stride, blocks.weights);
    conv_pixels(conv, blocks, row_end * out_w - pixel, runs, output + size(pixel) * output_stride, output_stride);
    return;
  }
  for (int y = row_begin; y < row_end; ++y) {
    const int in_y = y * s.stride_h - s.pad_h;
    const TapRange rows = inside(in_y, s.dilation_h, s.kernel_h, s.in_h);
    for (int x = 0, pixels = 0; x < out_w; x += pixels) {
      const int in_x = x * s.stride_w - s.pad_w;
      const TapRange columns = inside(in_x, s.dilation_w, s.kernel_w, s.in_w);
      // Pixels at the left and right edge go one by one, those in between in tiles.
      pixels = 1;
      if (columns.begin == 0 && columns.end == s.kernel_w) {
        const int reach = (s.in_w - 1 - in_x - (s.kernel_w - 1) * s.dilation_w) / s.stride_w + 1;
        pixels = reach < out_w - x ? reach : out_w - x;
      }
      const long origin = static_cast<long>(in_y) * s.in_w + in_x;
      const Runs runs = runs_of(s, rows, columns, input, origin, input_stride, blocks.weights);
      float* out = output + (size(y) * size(out_w) + size(x)) * output_stride;
      conv_pixels(conv, blocks, pixels, runs, out, output_stride);
    }
  }
}

void widen(const Half* from, const float* scale, size_t rows, float* to) {
  for (size_t row = 0; row < rows; ++row) {
    for (int lane = 0; lane < kDenseBlock; lane += kLanes) {
      const size_t at = row * size(kDenseBlock) + size(lane);
      store(to + at, load_widened(from + at) * load(scale + lane));
    }
  }
}

// Weights are read once from memory, so their bytes are the cost: row by row, in the order in which they lie there, and
// asked for ahead of the row at hand.
template <typename Weight>
void linear(const Weight* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output) {
  constexpr int kSums = 4;  // that do not wait for each other
  constexpr int kAhead = 4096 / static_cast<int>(sizeof(Weight));
  for (int o = 0; o < out_features; ++o, weights += in_features) {
    Vector sums[kSums] = {};
    int i = 0;
    for (; i + kSums * kLanes <= in_features; i += kSums * kLanes) {
      __builtin_prefetch(weights + i + kAhead);
#pragma GCC unroll 4
      for (int v = 0; v < kSums; ++v) sums[v] += load(input + i + v * kLanes) * load_widened(weights + i + v * kLanes);
    }
    for (; i + kLanes <= in_features; i += kLanes) sums[0] += load(input + i) * load_widened(weights + i);
    const Vector together = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0.0f;
    for (int lane = 0; lane < kLanes; ++lane) sum += together[lane];
    for (; i < in_features; ++i) sum = __builtin_fmaf(widened(weights[i]), input[i], sum);
    if (bias != nullptr) sum += bias[o];
    if (sum < 0.0f && activation != Activation::none) sum = activation == Activation::relu ? 0.0f : slope[o] * sum;
    output[o] = sum;
  }
}

}  // namespace
}  // namespace ebnet
