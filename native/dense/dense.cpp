// Preparation of weights and the choice of level; the arithmetic is in scalar.cpp and vector.h.
#include "dense/dense.h"

#include "dense/levels.h"

namespace ebnet {
namespace {

const DenseKernels& kernels(DenseLevel level) {
  return PerLevel<DenseKernels>{&kDenseScalar, EBNET_ON_X86_64(kDenseAvx2), EBNET_ON_X86_64(kDenseAvx512),
                                EBNET_ON_ARM64(kDenseNeon), EBNET_ON_SIMD128(kDenseSimd128)}
      .at(level);
}

// Blocks of output channels.
int block_count(const ConvShape& shape) { return (shape.out_channels + kDenseBlock - 1) / kDenseBlock; }

// Rows of kDenseBlock weights in one block.
std::size_t block_rows(const ConvShape& shape) {
  return static_cast<std::size_t>(shape.taps()) * static_cast<std::size_t>(shape.in_channels);
}

// One value per output channel, or `otherwise`, in whole blocks.
AlignedBytes lanes(const ConvShape& shape, const float* values, float otherwise) {
  AlignedBytes bytes(static_cast<std::size_t>(block_count(shape)) * kDenseBlock * sizeof(float));
  for (std::size_t o = 0; o < static_cast<std::size_t>(shape.out_channels); ++o) {
    bytes.as<float>()[o] = values != nullptr ? values[o] : otherwise;
  }
  return bytes;
}

DenseConv without_weights(const ConvShape& shape, const float* shift, Activation activation, const float* slope) {
  DenseConv conv;
  conv.shape = shape;
  conv.activation = activation;
  conv.bias = lanes(shape, shift, 0.0f);
  conv.slope = lanes(shape, slope, 0.0f);
  return conv;
}

// [out][in][tap] as [out / 16][tap][in][16], each weight passed through `change`.
template <typename Weight, typename Change>
AlignedBytes in_blocks(const ConvShape& shape, const Weight* weights, Change change) {
  const std::size_t taps = static_cast<std::size_t>(shape.taps());
  const std::size_t inputs = static_cast<std::size_t>(shape.in_channels);
  AlignedBytes bytes(static_cast<std::size_t>(block_count(shape)) * block_rows(shape) * kDenseBlock * sizeof(Weight));
  for (std::size_t o = 0; o < static_cast<std::size_t>(shape.out_channels); ++o) {
    for (std::size_t c = 0; c < inputs; ++c) {
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t row = (o / kDenseBlock * taps + tap) * inputs + c;
        bytes.as<Weight>()[row * kDenseBlock + o % kDenseBlock] = change(o, weights[(o * inputs + c) * taps + tap]);
      }
    }
  }
  return bytes;
}

}  // namespace

DenseConv make_dense_conv(const ConvShape& shape, const float* weights, const float* scale, const float* shift,
                          Activation activation, const float* slope) {
  DenseConv conv = without_weights(shape, shift, activation, slope);
  conv.weights = in_blocks(shape, weights, [&](std::size_t o, float weight) {
    return weight * (scale != nullptr ? scale[o] : 1.0f);
  });
  return conv;
}

DenseConv make_dense_conv(const ConvShape& shape, const Half* weights, const float* scale, const float* shift,
                          Activation activation, const float* slope) {
  DenseConv conv = without_weights(shape, shift, activation, slope);
  conv.halves = in_blocks(shape, weights, [](std::size_t, Half weight) { return weight; });
  conv.scale = lanes(shape, scale, 1.0f);
  return conv;
}

std::size_t dense_scratch_bytes(const DenseConv& conv) {
  return conv.halves.size() == 0 ? 0 : block_rows(conv.shape) * kDenseBlock * sizeof(float);
}

void dense_conv(const DenseConv& conv, const ConvShape& shape, const float* input, std::size_t input_stride,
                float* output, std::size_t output_stride, int row_begin, int row_end, DenseLevel level, void* scratch) {
  const DenseKernels& run = kernels(level);
  const int count = block_count(conv.shape);
  if (conv.halves.size() == 0) {
    run.conv(conv, shape, {0, count, conv.weights.as<float>()}, input, input_stride, output, output_stride, row_begin,
             row_end);
    return;
  }
  const std::size_t rows = block_rows(conv.shape);
  auto* widened = static_cast<float*>(scratch);
  for (int block = 0; block < count; ++block) {
    const std::size_t channel = static_cast<std::size_t>(block) * kDenseBlock;
    run.widen(conv.halves.as<Half>() + channel * rows, conv.scale.as<float>() + channel, rows, widened);
    run.conv(conv, shape, {block, block + 1, widened}, input, input_stride, output, output_stride, row_begin, row_end);
  }
}

bool runs_in_place(const ConvShape& shape) {
  return shape.taps() == 1 && shape.stride_h == 1 && shape.stride_w == 1 && shape.pad_h == 0 && shape.pad_w == 0 &&
         shape.out_channels <= shape.in_channels && shape.out_channels <= kDenseBlock;
}

void max_pool(const PoolShape& shape, const float* input, std::size_t input_stride, float* output,
              std::size_t output_stride, int row_begin, int row_end, DenseLevel level) {
  kernels(level).max_pool(shape, input, input_stride, output, output_stride, row_begin, row_end);
}

void average_pool(const PoolShape& shape, const float* input, std::size_t input_stride, float* output,
                  std::size_t output_stride, int row_begin, int row_end, DenseLevel level) {
  kernels(level).average_pool(shape, input, input_stride, output, output_stride, row_begin, row_end);
}

void global_average_pool(const float* input, std::size_t input_stride, int pixels, int channels, float* output,
                         DenseLevel level) {
  kernels(level).global_average_pool(input, input_stride, pixels, channels, output);
}

void row_means(const float* sums, int rows, int channels, double count, float* means, DenseLevel level) {
  kernels(level).row_means(sums, rows, channels, count, means);
}

void linear(const float* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output, DenseLevel level) {
  kernels(level).linear(weights, bias, slope, activation, input, in_features, out_features, output);
}

void linear(const Half* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output, DenseLevel level) {
  kernels(level).linear_of_halves(weights, bias, slope, activation, input, in_features, out_features, output);
}

}  // namespace ebnet
