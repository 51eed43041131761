// The specification of the real-valued kernels: plain loops.
#include <cstddef>

#include "dense/levels.h"

namespace ebnet {
namespace {

using std::size_t;

float activate(Activation activation, float slope, float value) {
  if (!(value < 0.0f) || activation == Activation::none) return value;
  return activation == Activation::relu ? 0.0f : slope * value;
}

// The convolution with its bias at one output pixel and channel, whose block has these weights.
float sum_at(const DenseConv& conv, const ConvShape& s, const float* block_weights, const float* input,
             size_t input_stride, int y, int x, int o) {
  float sum = conv.bias.as<float>()[o];
  for (int tap = 0; tap < s.taps(); ++tap) {
    const int in_y = y * s.stride_h + tap / s.kernel_w * s.dilation_h - s.pad_h;
    const int in_x = x * s.stride_w + tap % s.kernel_w * s.dilation_w - s.pad_w;
    if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
    const float* in = input + (static_cast<size_t>(in_y) * static_cast<size_t>(s.in_w) + static_cast<size_t>(in_x)) * input_stride;
    for (int c = 0; c < s.in_channels; ++c) {
      const size_t row = static_cast<size_t>(tap) * static_cast<size_t>(s.in_channels) + static_cast<size_t>(c);
      sum += in[c] * block_weights[row * kDenseBlock + static_cast<size_t>(o % kDenseBlock)];
    }
  }
  return sum;
}

void conv(const DenseConv& conv, const ConvShape& s, const DenseBlocks& blocks, const float* input, size_t input_stride,
          float* output, size_t output_stride, int row_begin, int row_end) {
  const size_t block_size = static_cast<size_t>(s.taps()) * static_cast<size_t>(s.in_channels) * kDenseBlock;
  for (int y = row_begin; y < row_end; ++y) {
    for (int x = 0; x < s.out_w(); ++x) {
      float* out = output + (static_cast<size_t>(y) * static_cast<size_t>(s.out_w()) + static_cast<size_t>(x)) * output_stride;
      const float* weights = blocks.weights;
      for (int b = blocks.begin; b < blocks.end; ++b, weights += block_size) {
        const int block = b * kDenseBlock;
        const int channels = s.out_channels - block < kDenseBlock ? s.out_channels - block : kDenseBlock;
        float sums[kDenseBlock];  // of all channels before the first is written: the output may be the input
        for (int o = 0; o < channels; ++o) sums[o] = sum_at(conv, s, weights, input, input_stride, y, x, block + o);
        for (int o = 0; o < channels; ++o) {
          out[block + o] = activate(conv.activation, conv.slope.as<float>()[block + o], sums[o]);
        }
      }
    }
  }
}

void widen(const Half* from, const float* scale, size_t rows, float* to) {
  for (size_t i = 0; i < rows * kDenseBlock; ++i) to[i] = half_to_float(from[i]) * scale[i % kDenseBlock];
}

// Calls visit(input pixel) for every pixel of a window that lies inside the image, and returns their number.
template <typename Visit>
int for_window(const PoolShape& s, const float* input, size_t input_stride, int y, int x, Visit visit) {
  int count = 0;
  for (int in_y = y * s.stride - s.pad; in_y < y * s.stride - s.pad + s.kernel; ++in_y) {
    for (int in_x = x * s.stride - s.pad; in_x < x * s.stride - s.pad + s.kernel; ++in_x) {
      if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
      visit(input + (static_cast<size_t>(in_y) * static_cast<size_t>(s.in_w) + static_cast<size_t>(in_x)) * input_stride);
      ++count;
    }
  }
  return count;
}

void max_pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
              int row_begin, int row_end) {
  for (int y = row_begin; y < row_end; ++y) {
    for (int x = 0; x < s.out_w(); ++x) {
      float* out = output + (static_cast<size_t>(y) * static_cast<size_t>(s.out_w()) + static_cast<size_t>(x)) * output_stride;
      bool first = true;
      for_window(s, input, input_stride, y, x, [&](const float* in) {
        for (int c = 0; c < s.channels; ++c) out[c] = first || in[c] > out[c] ? in[c] : out[c];
        first = false;
      });
    }
  }
}

void average_pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
                  int row_begin, int row_end) {
  for (int y = row_begin; y < row_end; ++y) {
    for (int x = 0; x < s.out_w(); ++x) {
      float* out = output + (static_cast<size_t>(y) * static_cast<size_t>(s.out_w()) + static_cast<size_t>(x)) * output_stride;
      for (int c = 0; c < s.channels; ++c) out[c] = 0.0f;
      const int count = for_window(s, input, input_stride, y, x, [&](const float* in) {
        for (int c = 0; c < s.channels; ++c) out[c] += in[c];
      });
      for (int c = 0; c < s.channels; ++c) out[c] /= static_cast<float>(count);
    }
  }
}

void global_average_pool(const float* input, size_t input_stride, int pixels, int channels, float* output) {
  for (int c = 0; c < channels; ++c) {
    float sum = 0.0f;
    for (int pixel = 0; pixel < pixels; ++pixel) sum += input[static_cast<size_t>(pixel) * input_stride + static_cast<size_t>(c)];
    output[c] = sum / static_cast<float>(pixels);
  }
}

void row_means(const float* sums, int rows, int channels, double count, float* means) {
  for (int c = 0; c < channels; ++c) {
    double total = 0.0;
    for (int row = 0; row < rows; ++row) total += static_cast<double>(sums[static_cast<size_t>(row) * static_cast<size_t>(channels) + static_cast<size_t>(c)]);
    means[c] = static_cast<float>(total / count);
  }
}

float widened(float value) { return value; }
float widened(Half value) { return half_to_float(value); }

template <typename Weight>
void linear(const Weight* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output) {
  for (int o = 0; o < out_features; ++o, weights += in_features) {
    float sum = bias != nullptr ? bias[o] : 0.0f;
    for (int i = 0; i < in_features; ++i) sum += widened(weights[i]) * input[i];
    output[o] = activate(activation, slope != nullptr ? slope[o] : 0.0f, sum);
  }
}

}  // namespace

const DenseKernels kDenseScalar = {conv, widen, max_pool, average_pool, global_average_pool, row_means,
                                     linear<float>, linear<Half>};

}  // namespace ebnet
