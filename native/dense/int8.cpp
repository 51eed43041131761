// Preparation of int8 weights, the choice of level, and the windows at an image's edge; the arithmetic is in
// int8_scalar.cpp and int8_vector.h.
#include "dense/int8.h"

#include <algorithm>
#include <cstring>

#include "dense/int8_levels.h"

namespace ebnet {
namespace {

using std::size_t;

size_t z(int value) { return static_cast<size_t>(value); }

const Int8Kernels& kernels(Int8Level level) {
#ifdef EBNET_X86_64
  if (level == Int8Level::vnni) return kInt8Vnni;
  if (level == Int8Level::avx2) return kInt8Avx2;
#elif defined(EBNET_ARM64)
  if (level == Int8Level::dotprod) return kInt8Dotprod;
  if (level == Int8Level::neon) return kInt8Neon;
#elif defined(EBNET_SIMD128)
  if (level == Int8Level::simd128) return kInt8Simd128;
#endif
  (void)level;
  return kInt8Scalar;
}

AlignedBytes lanes(const ConvShape& shape, const float* values) {
  AlignedBytes bytes(z((shape.out_channels + kInt8Block - 1) / kInt8Block) * kInt8Block * sizeof(float));
  if (values != nullptr) std::memcpy(bytes.data(), values, z(shape.out_channels) * sizeof(float));
  return bytes;
}

// Bytes of one output's window.
size_t patch_bytes(const ConvShape& shape) { return z(shape.taps()) * z(shape.in_channels); }

// Windows that are gathered together: enough to fill a tile of any level, as long as they stay in L1.
int patches(const ConvShape& shape) {
  constexpr size_t kNear = 16384;
  return static_cast<int>(std::clamp<size_t>(kNear / patch_bytes(shape), 1, 12));
}

// The outputs of one row, by what their windows need.
class Row {
 public:
  Row(const Int8Conv& conv, const ConvShape& shape, const std::uint8_t* input, size_t input_stride, int y)
      : conv_(conv), s_(shape), input_(input), stride_(input_stride), in_y_(y * s_.stride_h - s_.pad_h) {}

  // Outputs [begin, end) have their windows whole in memory, as runs of contiguous bytes; others are gathered.
  void inner(int* begin, int* end) const {
    const bool joined = stride_ == z(s_.in_channels) || s_.kernel_w == 1;
    const bool rows = in_y_ >= 0 && in_y_ + s_.kernel_h <= s_.in_h;
    const int room = s_.in_w + s_.pad_w - s_.kernel_w;  // of the last window's start, from the padding's
    *begin = std::min((s_.pad_w + s_.stride_w - 1) / s_.stride_w, s_.out_w());
    *end = joined && rows && room >= 0 ? std::min(room / s_.stride_w + 1, s_.out_w()) : *begin;
    *end = std::max(*begin, *end);
  }

  Int8Window window(int x) const {
    return {at(in_y_, x * s_.stride_w - s_.pad_w), z(s_.stride_w) * stride_, z(s_.in_w) * stride_};
  }

  // The window of output x, with `zeros` where it is outside of the image.
  void gather(int x, std::uint8_t* to) const {
    const size_t channels = z(s_.in_channels);
    for (int ky = 0; ky < s_.kernel_h; ++ky) {
      for (int kx = 0; kx < s_.kernel_w; ++kx, to += channels) {
        const int in_x = x * s_.stride_w - s_.pad_w + kx;
        const bool inside = in_y_ + ky >= 0 && in_y_ + ky < s_.in_h && in_x >= 0 && in_x < s_.in_w;
        std::memcpy(to, inside ? at(in_y_ + ky, in_x) : conv_.zeros.data(), channels);
      }
    }
  }

 private:
  const std::uint8_t* at(int y, int x) const { return input_ + (z(y) * z(s_.in_w) + z(x)) * stride_; }

  const Int8Conv& conv_;
  const ConvShape& s_;
  const std::uint8_t* input_;
  const size_t stride_;
  const int in_y_;
};

Int8Output from_pixel(Int8Output output, size_t pixel) {
  if (output.bytes != nullptr) output.bytes += pixel * output.stride;
  if (output.reals != nullptr) output.reals += pixel * output.stride;
  return output;
}

}  // namespace

Int8Conv make_int8_conv(const ConvShape& shape, const std::int8_t* weights, const std::uint8_t* zeros,
                        const float* multiplier, const float* shift, Activation activation, const float* slope) {
  Int8Conv conv;
  conv.shape = shape;
  conv.activation = activation;
  conv.row_runs = (shape.kernel_w * shape.in_channels + kInt8Run - 1) / kInt8Run;
  conv.multiplier = lanes(shape, multiplier);
  conv.shift = lanes(shape, shift);
  conv.slope = lanes(shape, slope);
  conv.start = lanes(shape, nullptr);
  conv.signed_start = lanes(shape, nullptr);
  conv.zeros = AlignedBytes(z(shape.in_channels));
  std::memcpy(conv.zeros.data(), zeros, z(shape.in_channels));
  conv.weights = AlignedBytes(z(int8_blocks(conv)) * int8_block_bytes(conv));
  const size_t inputs = z(shape.in_channels), height = z(shape.kernel_h), width = z(shape.kernel_w);
  for (size_t o = 0; o < z(shape.out_channels); ++o) {
    std::int32_t offset = 0, sum = 0;
    for (size_t c = 0; c < inputs; ++c) {
      for (size_t y = 0; y < height; ++y) {
        for (size_t x = 0; x < width; ++x) {
          const std::int8_t weight = weights[((o * inputs + c) * height + y) * width + x];
          const size_t i = x * inputs + c;
          const size_t run = (o / kInt8Block * height + y) * z(conv.row_runs) + i / kInt8Run;
          conv.weights.as<std::int8_t>()[(run * kInt8Block + o % kInt8Block) * kInt8Run + i % kInt8Run] = weight;
          offset += weight * zeros[c];
          sum += weight;
        }
      }
    }
    conv.start.as<std::int32_t>()[o] = -offset;
    conv.signed_start.as<std::int32_t>()[o] = 128 * sum - offset;
  }
  return conv;
}

int int8_blocks(const Int8Conv& conv) { return (conv.shape.out_channels + kInt8Block - 1) / kInt8Block; }

std::size_t int8_scratch_bytes(const Int8Conv& conv) {
  return z(patches(conv.shape)) * patch_bytes(conv.shape) + kInt8Slack;
}

void int8_conv(const Int8Conv& conv, const ConvShape& s, const std::uint8_t* input, size_t input_stride,
               const Int8Output& output, int row_begin, int row_end, Int8Level level, void* scratch) {
  const Int8Kernels& run = kernels(level);
  const int blocks = int8_blocks(conv);
  const int out_w = s.out_w();
  // A 1x1 convolution with stride 1 does not see rows: all its pixels are one line.
  if (s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0) {
    const size_t pixel = z(row_begin) * z(out_w);
    run.conv(conv, {input + pixel * input_stride, input_stride, 0}, (row_end - row_begin) * out_w, 0, blocks,
             from_pixel(output, pixel));
    return;
  }
  auto* const gathered = static_cast<std::uint8_t*>(scratch);
  const size_t patch = patch_bytes(s);
  const int together = patches(s);
  for (int y = row_begin; y < row_end; ++y) {
    const Row row(conv, s, input, input_stride, y);
    int begin = 0, end = 0;
    row.inner(&begin, &end);
    const Int8Output out = from_pixel(output, z(y) * z(out_w));
    if (begin < end) run.conv(conv, row.window(begin), end - begin, 0, blocks, from_pixel(out, z(begin)));
    for (int x = begin > 0 || begin == end ? 0 : end; x < out_w;) {
      const int stop = x < begin ? begin : out_w;
      const int count = std::min(together, stop - x);
      for (int i = 0; i < count; ++i) row.gather(x + i, gathered + z(i) * patch);
      run.conv(conv, {gathered, patch, z(s.kernel_w) * z(s.in_channels)}, count, 0, blocks, from_pixel(out, z(x)));
      x += count;
      if (x == begin) x = end;
    }
  }
}

void int8_linear(const Int8Conv& conv, const std::uint8_t* input, const Int8Output& output, int block_begin,
                 int block_end, Int8Level level) {
  kernels(level).conv(conv, {input, 0, 0}, 1, block_begin, block_end, output);
}

void to_bytes(const float* input, size_t input_stride, int pixels, int channels, const float* inverse,
              const float* zero, std::uint8_t* output, size_t output_stride, Int8Level level) {
  kernels(level).to_bytes(input, input_stride, pixels, channels, inverse, zero, output, output_stride);
}

void max_pool_bytes(const PoolShape& shape, const std::uint8_t* input, size_t input_stride, std::uint8_t* output,
                    size_t output_stride, int row_begin, int row_end, Int8Level level) {
  kernels(level).max_pool(shape, input, input_stride, output, output_stride, row_begin, row_end);
}

}  // namespace ebnet
