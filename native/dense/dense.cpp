// Preparation of weights and the choice of level; the arithmetic is in scalar.cpp and vector.h.
#include "dense/dense.h"

#include "dense/levels.h"

#ifdef EBNET_DENSE_X86_64
#include <cpuid.h>
#endif

namespace ebnet {
namespace {

const DenseKernels& kernels(DenseLevel level) {
#ifdef EBNET_DENSE_X86_64
  if (level == DenseLevel::avx512) return kDenseAvx512;
  if (level == DenseLevel::avx2) return kDenseAvx2;
#endif
  (void)level;
  return kDenseScalar;
}

#ifdef EBNET_DENSE_X86_64
// Not every compiler's __builtin_cpu_supports knows it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

bool cpu_supports(DenseLevel level) {
#ifdef EBNET_DENSE_X86_64
  if (level == DenseLevel::avx512) return __builtin_cpu_supports("avx512f") && has_f16c();
  if (level == DenseLevel::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#endif
  return level == DenseLevel::scalar;
}

DenseLevel dense_level(Isa isa) {
  if (isa == Isa::avx512 && cpu_supports(DenseLevel::avx512)) return DenseLevel::avx512;
  if ((isa == Isa::avx512 || isa == Isa::avx2) && cpu_supports(DenseLevel::avx2)) return DenseLevel::avx2;
  return DenseLevel::scalar;
}

const char* dense_level_name(DenseLevel level) {
  if (level == DenseLevel::avx512) return "avx512";
  return level == DenseLevel::avx2 ? "avx2" : "scalar";
}

DenseConv make_dense_conv(const ConvShape& shape, const float* weights, const float* scale, const float* shift,
                          Activation activation, const float* slope) {
  const std::size_t blocks = static_cast<std::size_t>((shape.out_channels + kDenseBlock - 1) / kDenseBlock);
  const std::size_t taps = static_cast<std::size_t>(shape.taps());
  const std::size_t inputs = static_cast<std::size_t>(shape.in_channels);
  DenseConv conv;
  conv.shape = shape;
  conv.activation = activation;
  conv.weights = AlignedBytes(blocks * taps * inputs * kDenseBlock * sizeof(float));
  conv.bias = AlignedBytes(blocks * kDenseBlock * sizeof(float));
  conv.slope = AlignedBytes(blocks * kDenseBlock * sizeof(float));
  for (std::size_t o = 0; o < static_cast<std::size_t>(shape.out_channels); ++o) {
    const float factor = scale != nullptr ? scale[o] : 1.0f;
    for (std::size_t c = 0; c < inputs; ++c) {
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t row = (o / kDenseBlock * taps + tap) * inputs + c;
        conv.weights.as<float>()[row * kDenseBlock + o % kDenseBlock] = weights[(o * inputs + c) * taps + tap] * factor;
      }
    }
    conv.bias.as<float>()[o] = shift != nullptr ? shift[o] : 0.0f;
    conv.slope.as<float>()[o] = slope != nullptr ? slope[o] : 0.0f;
  }
  return conv;
}

void dense_conv(const DenseConv& conv, const float* input, std::size_t input_stride, float* output,
                std::size_t output_stride, int row_begin, int row_end, DenseLevel level) {
  kernels(level).conv(conv, input, input_stride, output, output_stride, row_begin, row_end);
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

void linear(const float* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output, DenseLevel level) {
  kernels(level).linear(weights, bias, slope, activation, input, in_features, out_features, output);
}

void linear(const Half* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output, DenseLevel level) {
  kernels(level).linear_of_halves(weights, bias, slope, activation, input, in_features, out_features, output);
}

}  // namespace ebnet
