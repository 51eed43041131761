// The specification of the int8 layers: plain loops. Other levels give the same bits.
#include "dense/int8_levels.h"

namespace ebnet {
namespace {

using std::size_t;

float activate(const Int8Conv& conv, size_t channel, float value) {
  if (conv.activation == Activation::none || !(value < 0.0f)) return value;
  return conv.activation == Activation::relu ? 0.0f : conv.slope.as<float>()[channel] * value;
}

std::int32_t sum_of(const Int8Conv& conv, const std::uint8_t* input, size_t row_step, size_t channel) {
  const auto run = static_cast<size_t>(conv.shape.kernel_w) * static_cast<size_t>(conv.shape.in_channels);
  const std::int8_t* weights = conv.weights.as<std::int8_t>() + channel / kInt8Block * int8_block_bytes(conv) +
                               channel % kInt8Block * kInt8Run;
  std::int32_t sum = 0;
  for (int row = 0; row < conv.shape.kernel_h; ++row, input += row_step) {
    for (size_t i = 0; i < run; ++i) {
      sum += input[i] * weights[i / kInt8Run * (kInt8Block * kInt8Run) + i % kInt8Run];
    }
    weights += static_cast<size_t>(conv.row_runs) * kInt8Block * kInt8Run;
  }
  return sum + conv.start.as<std::int32_t>()[channel];
}

void conv(const Int8Conv& conv, const Int8Window& window, int pixels, int block_begin, int block_end,
          const Int8Output& output) {
  const float inverse = 1.0f / output.code.step;
  const auto zero = static_cast<float>(output.code.zero);
  const int last = block_end * kInt8Block < conv.shape.out_channels ? block_end * kInt8Block : conv.shape.out_channels;
  for (size_t p = 0; p < static_cast<size_t>(pixels); ++p) {
    for (auto o = static_cast<size_t>(block_begin * kInt8Block); o < static_cast<size_t>(last); ++o) {
      const auto sum = static_cast<float>(sum_of(conv, window.input + p * window.pixel_step, window.row_step, o));
      const float real =
          activate(conv, o, fused_once(sum, conv.multiplier.as<float>()[o], conv.shift.as<float>()[o]));
      if (output.bytes != nullptr) {
        output.bytes[p * output.stride + o] = byte_of(real, inverse, zero);
      } else {
        output.reals[p * output.stride + o] = real;
      }
    }
  }
}

void to_bytes(const float* input, size_t input_stride, int pixels, int channels, const float* inverse,
              const float* zero, std::uint8_t* output, size_t output_stride) {
  for (int p = 0; p < pixels; ++p, input += input_stride, output += output_stride) {
    for (int c = 0; c < channels; ++c) output[c] = byte_of(input[c], inverse[c], zero[c]);
  }
}

void max_pool(const PoolShape& s, const std::uint8_t* input, size_t input_stride, std::uint8_t* output,
              size_t output_stride, int row_begin, int row_end) {
  const auto at = [&](int y, int x) {
    return input + (static_cast<size_t>(y) * static_cast<size_t>(s.in_w) + static_cast<size_t>(x)) * input_stride;
  };
  for (int y = row_begin; y < row_end; ++y) {
    for (int x = 0; x < s.out_w(); ++x) {
      std::uint8_t* out =
          output + (static_cast<size_t>(y) * static_cast<size_t>(s.out_w()) + static_cast<size_t>(x)) * output_stride;
      for (int c = 0; c < s.channels; ++c) out[c] = 0;  // no byte is less
      for (int in_y = y * s.stride - s.pad; in_y < y * s.stride - s.pad + s.kernel; ++in_y) {
        for (int in_x = x * s.stride - s.pad; in_x < x * s.stride - s.pad + s.kernel; ++in_x) {
          if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
          const std::uint8_t* in = at(in_y, in_x);
          for (int c = 0; c < s.channels; ++c) out[c] = in[c] > out[c] ? in[c] : out[c];
        }
      }
    }
  }
}

}  // namespace

const Int8Kernels kInt8Scalar = {conv, to_bytes, max_pool};

}  // namespace ebnet
