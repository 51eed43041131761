// The few real-valued kernels: stems, shortcut projections, pooling, gates and the classifier. fp32, NHWC.
//
// Rows and pixels are strided, so that a branch can write its slice of a concatenation in place. Kernels are
// reentrant and allocate nothing when they run. Vector levels use FMA and sum in another order, and therefore differ
// from the scalar truth by rounding; for one level the result does not depend on row split or thread count.
#pragma once
#include <cstddef>

#include "base/activation.h"
#include "base/aligned.h"
#include "base/cpu.h"
#include "base/half.h"
#include "base/shape.h"

namespace ebnet {

// A real convolution (groups = 1) with batch norm folded in. It serves every input size.
struct DenseConv {
  ConvShape shape;  // but for its input's height and width, which each call gives
  Activation activation = Activation::none;
  AlignedBytes weights;  // [out channels / 16][ky][kx][in][16], lanes past the last channel are 0
  AlignedBytes halves;   // the same in half precision, where they are kept so: without `scale`, and without `weights`
  AlignedBytes scale;    // [out channels rounded up to 16], of `halves`
  AlignedBytes bias;     // [out channels rounded up to 16]
  AlignedBytes slope;    // the same, PReLU
};

// weights: [out][in][kh][kw]; scale and shift: [out], or null for 1 and 0; slope: [out], needed for prelu.
DenseConv make_dense_conv(const ConvShape& shape, const float* weights, const float* scale, const float* shift,
                          Activation activation, const float* slope);
// The same convolution, float for float, in half the memory. Each block of 16 channels is widened when it runs, which
// costs nothing much where weights are many and pixels few.
DenseConv make_dense_conv(const ConvShape& shape, const Half* weights, const float* scale, const float* shift,
                          Activation activation, const float* slope);
// Room that dense_conv needs: none but for halves.
std::size_t dense_scratch_bytes(const DenseConv& conv);

// Output rows [row_begin, row_end) of one sample of `shape`, which is the convolution's at some size; strides are floats from pixel to pixel. `output` may be offset to a
// channel slice of a wider buffer. `scratch` has dense_scratch_bytes and is private to the calling thread.
void dense_conv(const DenseConv& conv, const ConvShape& shape, const float* input, std::size_t input_stride,
                float* output, std::size_t output_stride, int row_begin, int row_end, DenseLevel level,
                void* scratch = nullptr);

// Whether dense_conv's output may be its input, at the same stride: a pixel is then read whole before it is written.
bool runs_in_place(const ConvShape& shape);

struct PoolShape {
  int channels = 1;
  int kernel = 1, stride = 1, pad = 0;
  int in_h = 1, in_w = 1;
  bool ceil_mode = false;
  // As torch: in ceil mode the last window is dropped where it would start in the right padding.
  EBNET_INLINE int out_h() const { return extent(in_h); }
  EBNET_INLINE int out_w() const { return extent(in_w); }

 private:
  EBNET_INLINE int extent(int in) const {
    int out = (in + 2 * pad - kernel + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (out - 1) * stride >= in + pad) --out;
    return out;
  }
};

// Padding takes no part in the maximum, nor in the average's divisor.
void max_pool(const PoolShape& shape, const float* input, std::size_t input_stride, float* output,
              std::size_t output_stride, int row_begin, int row_end, DenseLevel level);
void average_pool(const PoolShape& shape, const float* input, std::size_t input_stride, float* output,
                  std::size_t output_stride, int row_begin, int row_end, DenseLevel level);

// output[c] = mean over pixels.
void global_average_pool(const float* input, std::size_t input_stride, int pixels, int channels, float* output,
                         DenseLevel level);

// means[c] = the sum of sums[row][c] over rows, in double precision and in that order at every level, by `count`.
void row_means(const float* sums, int rows, int channels, double count, float* means, DenseLevel level);

// output[o] = activation(dot(weights[o], input) + bias[o]); weights [out][in] row-major, bias and slope may be null.
// Halves give what they give when widened first.
void linear(const float* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output, DenseLevel level);
void linear(const Half* weights, const float* bias, const float* slope, Activation activation, const float* input,
            int in_features, int out_features, float* output, DenseLevel level);

}  // namespace ebnet
