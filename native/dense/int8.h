// Real layers in int8: activations are bytes, weights are whole numbers of -64 to 64, sums are exact int32, and what
// follows the sum (batch norm, activation, the next layer's bytes) is done in single precision.
//
// A byte q stands for the real (q - zero) * step. With q = real / step + zero rounded to the nearest (ties to even) and
// kept within 0 to 255, a convolution is
//
//   sum over taps of (q - zero) * w = (sum of q * w) - (sum of zero * w),
//
// whose second half is the same for every pixel, because a tap outside the image is given the byte `zero`. It is where
// each sum starts. Every level computes the same integers, and the same floats from them: one fused multiply-add each,
// no sum of floats. So all levels agree in every bit.
//
// Why 64: AVX2 adds two products of bytes in 16 bits, and 2 * 255 * 64 = 32,640 is the most that fits there.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/activation.h"
#include "base/aligned.h"
#include "base/cpu.h"
#include "base/inline.h"
#include "base/shape.h"
#include "dense/dense.h"

namespace ebnet {

inline constexpr int kLargestInt8Weight = 64;
// Products that one instruction adds up, of neighbouring inputs with one output's weights.
#ifdef EBNET_SIMD128
inline constexpr int kInt8Run = 2;
#else
inline constexpr int kInt8Run = 4;
#endif
// Inputs of one sum: 255 * 64 times as many is below 2^31.
inline constexpr int kMostInt8Inputs = 1 << 17;

// What a byte stands for.
struct ByteCode {
  float step = 1.0f;
  int zero = 0;
};

EBNET_INLINE bool operator==(const ByteCode& a, const ByteCode& b) { return a.step == b.step && a.zero == b.zero; }

// A convolution (groups = 1, dilation = 1), or with a 1x1 kernel a linear map. It serves every input size.
struct Int8Conv {
  ConvShape shape;  // but for its input's height and width, which each call gives
  Activation activation = Activation::none;
  int row_runs = 0;         // of kInt8Run inputs in a row of the kernel
  AlignedBytes weights;     // [out channels / 16][ky][row_runs][16][kInt8Run], 0 past the last channel and input
  AlignedBytes start;       // int32 [out channels rounded up to 16]: - sum of zero * w
  AlignedBytes signed_start;  // the same for bytes less 128, which a level may multiply in their place
  AlignedBytes multiplier;  // float, the same: sum -> real
  AlignedBytes shift;       // float
  AlignedBytes slope;       // float, PReLU
  AlignedBytes zeros;       // bytes [in channels]: what a tap outside the image reads
};

// weights: [out][in][kh][kw]; zeros: [in]; multiplier and shift: [out]; slope: [out] or null.
Int8Conv make_int8_conv(const ConvShape& shape, const std::int8_t* weights, const std::uint8_t* zeros,
                        const float* multiplier, const float* shift, Activation activation, const float* slope);

// Where results go: floats, or bytes of a code.
struct Int8Output {
  float* reals = nullptr;
  std::uint8_t* bytes = nullptr;
  std::size_t stride = 0;  // values from pixel to pixel
  ByteCode code;           // of bytes
};

// Readers of bytes may read as many past the last one they use.
inline constexpr std::size_t kInt8Slack = 4;

// Room that int8_conv needs, private to the calling thread.
std::size_t int8_scratch_bytes(const Int8Conv& conv);

// Output rows [row_begin, row_end) of one image; `input_stride` is bytes from pixel to pixel.
void int8_conv(const Int8Conv& conv, const ConvShape& shape, const std::uint8_t* input, std::size_t input_stride,
               const Int8Output& output, int row_begin, int row_end, Int8Level level, void* scratch);

// Output channels [16 * block_begin, 16 * block_end) of a linear map of one vector.
void int8_linear(const Int8Conv& conv, const std::uint8_t* input, const Int8Output& output, int block_begin,
                 int block_end, Int8Level level);
int int8_blocks(const Int8Conv& conv);

// Bytes of `pixels` pixels: round(real * inverse[c] + zero[c]) within 0 to 255; NaN gives 0.
void to_bytes(const float* input, std::size_t input_stride, int pixels, int channels, const float* inverse,
              const float* zero, std::uint8_t* output, std::size_t output_stride, Int8Level level);

// As max_pool: bytes are in the order of what they stand for.
void max_pool_bytes(const PoolShape& shape, const std::uint8_t* input, std::size_t input_stride, std::uint8_t* output,
                    std::size_t output_stride, int row_begin, int row_end, Int8Level level);

}  // namespace ebnet
