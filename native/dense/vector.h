// The real-valued kernels on vectors of EBNET_DENSE_LANES floats, written once with the compiler's vector types and
// compiled for each level with its flags. Pixels are channels-last, so lanes are channels and nothing is summed across
// them except in `linear`.
#pragma once
#include <immintrin.h>

#include <cstring>

#include "dense/lanes.h"
#include "dense/levels.h"

namespace ebnet {
namespace {

inline Vector load_widened(const float* from) { return load(from); }

inline Vector load_widened(const Half* from) {
  Vector value;
  for (int lane = 0; lane < kLanes; lane += 8) {
    __m128i halves;
    std::memcpy(&halves, from + lane, sizeof halves);
    const __m256 eight = _mm256_cvtph_ps(halves);
    std::memcpy(reinterpret_cast<char*>(&value) + lane * sizeof(float), &eight, sizeof eight);
  }
  return value;
}

inline float widened(float value) { return value; }
inline float widened(Half value) { return half_to_float(value); }

inline Vector activate(Activation activation, Vector slope, Vector value) {
  const Mask negative = value < Vector{};
  if (activation == Activation::relu) return negative ? Vector{} : value;
  if (activation == Activation::prelu) return negative ? slope * value : value;
  return value;
}

// A convolution tile keeps kTilePixels x 16 sums in registers: 12 of 16 vector registers with 8 lanes, 14 of 32 with 16.
constexpr int kVectors = kDenseBlock / kLanes;
constexpr int kTilePixels = kLanes == 16 ? 14 : 6;

struct TapRange {
  int begin, end;
};

inline TapRange inside(int first, int dilation, int kernel, int extent) {
  int begin = 0, end = kernel;
  while (begin < kernel && first + begin * dilation < 0) ++begin;
  while (end > begin && first + (end - 1) * dilation >= extent) --end;
  return {begin, end};
}

// kPixels neighbouring outputs that see the same taps of the kernel: rows x columns, at input pixel `origin` for tap 0.
template <int kPixels>
void conv_tile(const DenseConv& conv, int block, const float* block_weights, TapRange rows, TapRange columns, const float* input, long origin,
               size_t input_stride, float* output, size_t output_stride) {
  const ConvShape& s = conv.shape;
  const int channel = block * kDenseBlock;
  Vector sums[kPixels][kVectors];
#pragma GCC unroll 14
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[p][v] = load(conv.bias.as<float>() + channel + v * kLanes);
  }
  const size_t pixel_step = size(s.stride_w) * input_stride;
  // Taps of a row are contiguous where pixels are: one long run instead of many short ones.
  const bool joined = s.dilation_w == 1 && input_stride == size(s.in_channels);
  const int run = joined ? (columns.end - columns.begin) * s.in_channels : s.in_channels;
  for (int ky = rows.begin; ky < rows.end; ++ky) {
    for (int kx = columns.begin; kx < columns.end; kx += joined ? s.kernel_w : 1) {
      const float* in = input + (origin + static_cast<long>(ky * s.dilation_h) * s.in_w + kx * s.dilation_w) *
                                    static_cast<long>(input_stride);
      const float* weights = block_weights + size(ky * s.kernel_w + kx) * size(s.in_channels) * size(kDenseBlock);
      for (int c = 0; c < run; ++c, weights += kDenseBlock) {
        Vector w[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * kLanes);
#pragma GCC unroll 14
        for (int p = 0; p < kPixels; ++p) {
          const Vector a = splat(in[size(p) * pixel_step + size(c)]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sums[p][v] += a * w[v];
        }
      }
    }
  }
  const int channels = s.out_channels - channel < kDenseBlock ? s.out_channels - channel : kDenseBlock;
#pragma GCC unroll 14
  for (int p = 0; p < kPixels; ++p) {
    float* out = output + size(p) * output_stride + channel;
    float last[kDenseBlock];
    float* to = channels == kDenseBlock ? out : last;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vector slope = load(conv.slope.as<float>() + channel + v * kLanes);
      store(to + v * kLanes, activate(conv.activation, slope, sums[p][v]));
    }
    if (to == last) std::memcpy(out, last, size(channels) * sizeof(float));
  }
}

// All given blocks of `pixels` neighbours, in tiles of kPixels, then of half as many, down to one.
template <int kPixels>
void conv_pixels(const DenseConv& conv, const DenseBlocks& blocks, int pixels, TapRange rows, TapRange columns, const float* input, long origin,
                 size_t input_stride, float* output, size_t output_stride) {
  const size_t block_size = size(conv.shape.taps()) * size(conv.shape.in_channels) * size(kDenseBlock);
  for (; pixels >= kPixels; pixels -= kPixels) {
    const float* weights = blocks.weights;
    for (int block = blocks.begin; block < blocks.end; ++block, weights += block_size) {
      conv_tile<kPixels>(conv, block, weights, rows, columns, input, origin, input_stride, output, output_stride);
    }
    origin += kPixels * conv.shape.stride_w;
    output += size(kPixels) * output_stride;
  }
  if constexpr (kPixels > 1) {
    if (pixels == 0) return;
    conv_pixels<(kPixels + 1) / 2>(conv, blocks, pixels, rows, columns, input, origin, input_stride, output, output_stride);
  }
}

void conv(const DenseConv& conv, const DenseBlocks& blocks, const float* input, size_t input_stride, float* output,
          size_t output_stride, int row_begin, int row_end) {
  const ConvShape& s = conv.shape;
  const int out_w = s.out_w();
  // A 1x1 convolution with stride 1 does not see rows: all its pixels are one line.
  const bool flat = s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0;
  if (flat) {
    const int pixel = row_begin * out_w;
    conv_pixels<kTilePixels>(conv, blocks, row_end * out_w - pixel, {0, 1}, {0, 1}, input, pixel, input_stride,
                             output + size(pixel) * output_stride, output_stride);
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
      conv_pixels<kTilePixels>(conv, blocks, pixels, rows, columns, input, origin, input_stride,
                               output + (size(y) * size(out_w) + size(x)) * output_stride, output_stride);
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

// One output pixel of a pool: combine(sum so far, value) over the window's pixels inside the image, then finish.
template <typename Start, typename Combine, typename Finish>
void pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
          int row_begin, int row_end, Start start, Combine combine, Finish finish) {
  const int out_w = s.out_w();
  for (int y = row_begin; y < row_end; ++y) {
    const TapRange rows = inside(y * s.stride - s.pad, 1, s.kernel, s.in_h);
    for (int x = 0; x < out_w; ++x) {
      const TapRange columns = inside(x * s.stride - s.pad, 1, s.kernel, s.in_w);
      const long origin = static_cast<long>(y * s.stride - s.pad) * s.in_w + (x * s.stride - s.pad);
      float* out = output + (size(y) * size(out_w) + size(x)) * output_stride;
      const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
      const auto channels = [&](int c, auto read, auto write) {
        auto sum = start(read(input + (origin + static_cast<long>(rows.begin) * s.in_w + columns.begin) *
                                          static_cast<long>(input_stride) + c));
        for (int ky = rows.begin; ky < rows.end; ++ky) {
          for (int kx = columns.begin; kx < columns.end; ++kx) {
            const long pixel = origin + static_cast<long>(ky) * s.in_w + kx;
            sum = combine(sum, read(input + pixel * static_cast<long>(input_stride) + c));
          }
        }
        write(out + c, finish(sum, static_cast<float>(count)));
      };
      int c = 0;
      for (; c + kLanes <= s.channels; c += kLanes) channels(c, load, store);
      for (; c < s.channels; ++c) {
        channels(c, [](const float* from) { return *from; }, [](float* to, float value) { *to = value; });
      }
    }
  }
}

void max_pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
              int row_begin, int row_end) {
  pool(s, input, input_stride, output, output_stride, row_begin, row_end, [](auto first) { return first; },
       [](auto a, auto b) { return b > a ? b : a; }, [](auto sum, float) { return sum; });
}

void average_pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
                  int row_begin, int row_end) {
  pool(s, input, input_stride, output, output_stride, row_begin, row_end, [](auto first) { return decltype(first){}; },
       [](auto a, auto b) { return a + b; }, [](auto sum, float count) { return sum / count; });
}

void global_average_pool(const float* input, size_t input_stride, int pixels, int channels, float* output) {
  int c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    Vector sum = {};
    for (int p = 0; p < pixels; ++p) sum += load(input + size(p) * input_stride + size(c));
    store(output + c, sum / static_cast<float>(pixels));
  }
  for (; c < channels; ++c) {
    float sum = 0.0f;
    for (int p = 0; p < pixels; ++p) sum += input[size(p) * input_stride + size(c)];
    output[c] = sum / static_cast<float>(pixels);
  }
}

// Rows are read once from memory, so their bytes are the cost: four at a time keep enough loads in flight.
template <typename Weight>
void linear(const Weight* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output) {
  constexpr int kRows = 4;
  for (int o = 0; o < out_features; o += kRows) {
    const int rows = out_features - o < kRows ? out_features - o : kRows;
    const Weight* row[kRows];
    for (int r = 0; r < kRows; ++r) row[r] = weights + size(o + (r < rows ? r : 0)) * size(in_features);
    Vector sums[kRows] = {};
    int i = 0;
    for (; i + kLanes <= in_features; i += kLanes) {
      const Vector x = load(input + i);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r] += x * load_widened(row[r] + i);
    }
    for (int r = 0; r < rows; ++r) {
      float sum = 0.0f;
      for (int lane = 0; lane < kLanes; ++lane) sum += sums[r][lane];
      for (int j = i; j < in_features; ++j) sum += widened(row[r][j]) * input[j];
      if (bias != nullptr) sum += bias[o + r];
      if (sum < 0.0f && activation != Activation::none) sum = activation == Activation::relu ? 0.0f : slope[o + r] * sum;
      output[o + r] = sum;
    }
  }
}

}  // namespace
}  // namespace ebnet
