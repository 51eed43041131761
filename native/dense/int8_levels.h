// One table of functions per level of the int8 layers, each filled in its own file with its own compiler flags.
#pragma once
#include "dense/int8.h"

namespace ebnet {

inline constexpr int kInt8Block = 16;  // output channels that share one block of weights

// Neighbouring outputs, all of whose taps lie in memory: at `input` those of the first.
struct Int8Window {
  const std::uint8_t* input;
  std::size_t pixel_step;  // bytes from output to output
  std::size_t row_step;    // from kernel row to kernel row
};

struct Int8Kernels {
  // Blocks [block_begin, block_end) of `pixels` neighbouring outputs.
  void (*conv)(const Int8Conv& conv, const Int8Window& window, int pixels, int block_begin, int block_end,
               const Int8Output& output);
  void (*to_bytes)(const float* input, std::size_t input_stride, int pixels, int channels, const float* inverse,
                   const float* zero, std::uint8_t* output, std::size_t output_stride);
  void (*max_pool)(const PoolShape& shape, const std::uint8_t* input, std::size_t input_stride, std::uint8_t* output,
                   std::size_t output_stride, int row_begin, int row_end);
};

extern const Int8Kernels kInt8Scalar;
#ifdef EBNET_X86_64
extern const Int8Kernels kInt8Avx2;
extern const Int8Kernels kInt8Vnni;
#elif defined(EBNET_ARM64)
extern const Int8Kernels kInt8Neon;
extern const Int8Kernels kInt8Dotprod;
#elif defined(EBNET_SIMD128)
extern const Int8Kernels kInt8Simd128;
#endif

namespace {

EBNET_INLINE std::size_t int8_block_bytes(const Int8Conv& conv) {
  return static_cast<std::size_t>(conv.shape.kernel_h) * static_cast<std::size_t>(conv.row_runs) * kInt8Block *
         kInt8Run;
}

// a * b + c, rounded once. WebAssembly's library rounds twice, for want of rounding modes; int8_simd128.cpp tells what is
// done here instead.
EBNET_INLINE float fused_once(float a, float b, float c) {
#ifdef EBNET_SIMD128
  const double product = static_cast<double>(a) * b, sum = product + c, added = sum - product;
  const double e = (product - (sum - added)) + (c - added);
  std::int64_t bits = 0;
  __builtin_memcpy(&bits, &sum, sizeof bits);
  if ((e < 0.0 || e > 0.0) && (bits & 1) == 0) bits += (e > 0.0) == (sum > 0.0) ? 1 : -1;
  double odd = 0.0;
  __builtin_memcpy(&odd, &bits, sizeof odd);
  return static_cast<float>(odd);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

// 1.5 * 2^23: a float of 0 to 255 added to it is rounded to a whole number, ties to even, in its lowest bits.
constexpr float kRounder = 12582912.0f;

EBNET_INLINE std::uint8_t byte_of(float real, float inverse, float zero) {
  float scaled = fused_once(real, inverse, zero);
  scaled = scaled > 0.0f ? scaled : 0.0f;
  scaled = scaled < 255.0f ? scaled : 255.0f;
  const float rounded = scaled + kRounder;
  std::uint32_t word = 0;
  __builtin_memcpy(&word, &rounded, sizeof word);
  return static_cast<std::uint8_t>(word);
}

}  // namespace
}  // namespace ebnet
