// One table of functions per level, each filled in its own file with its own compiler flags.
#pragma once
#include "dense/dense.h"

namespace ebnet {

inline constexpr int kDenseBlock = 16;  // output channels that share one block of convolution weights

// Some of a convolution's blocks of output channels, with their weights.
struct DenseBlocks {
  int begin, end;
  const float* weights;  // of block `begin`, the others follow
};

struct DenseKernels {
  void (*conv)(const DenseConv& conv, const ConvShape& shape, const DenseBlocks& blocks, const float* input,
               std::size_t input_stride, float* output, std::size_t output_stride, int row_begin, int row_end);
  // to[row][lane] = from[row][lane] * scale[lane], kDenseBlock lanes.
  void (*widen)(const Half* from, const float* scale, std::size_t rows, float* to);
  void (*max_pool)(const PoolShape& shape, const float* input, std::size_t input_stride, float* output,
                   std::size_t output_stride, int row_begin, int row_end);
  void (*average_pool)(const PoolShape& shape, const float* input, std::size_t input_stride, float* output,
                       std::size_t output_stride, int row_begin, int row_end);
  void (*global_average_pool)(const float* input, std::size_t input_stride, int pixels, int channels, float* output);
  void (*row_means)(const float* sums, int rows, int channels, double count, float* means);
  void (*linear)(const float* weights, const float* bias, const float* slope, Activation activation, const float* input,
                 int in_features, int out_features, float* output);
  void (*linear_of_halves)(const Half* weights, const float* bias, const float* slope, Activation activation,
                           const float* input, int in_features, int out_features, float* output);
};

extern const DenseKernels kDenseScalar;
#ifdef EBNET_X86_64
extern const DenseKernels kDenseAvx2;
extern const DenseKernels kDenseAvx512;
#elif defined(EBNET_ARM64)
extern const DenseKernels kDenseNeon;
#elif defined(EBNET_SIMD128)
extern const DenseKernels kDenseSimd128;
#endif

}  // namespace ebnet
