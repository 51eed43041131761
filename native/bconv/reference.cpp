// The specification: binary convolution as plain loops over -1, 0 and +1. Slow on purpose; every other kernel is
// tested for equality with it.
#include "bconv/epilogue_scalar.h"
#include "bconv/kernels.h"
#include "bits/canonical.h"

namespace ebnet {
namespace {

bool supports(const ConvShape&) { return true; }

// Weights as -1 / +1 bytes, [out channel][ky][kx][in / groups].
PackedWeights prepare(const std::uint8_t* canonical, const ConvShape& shape) {
  PackedWeights packed;
  const int per_group = shape.in_per_group();
  packed.data = AlignedBytes(static_cast<std::size_t>(shape.out_channels) * static_cast<std::size_t>(shape.taps()) *
                             static_cast<std::size_t>(per_group));
  std::int8_t* weight = packed.data.as<std::int8_t>();
  for (int o = 0; o < shape.out_channels; ++o) {
    for (int tap = 0; tap < shape.taps(); ++tap) {
      for (int c = 0; c < per_group; ++c) *weight++ = canonical_bit(canonical, shape, o, tap, c) ? 1 : -1;
    }
  }
  return packed;
}

std::size_t scratch_bytes(const ConvShape&) { return 0; }

// The input's sign at a place: 0 in the padding, else the bit as -1 or +1.
int sign_at(const ConvTask& task, int y, int x, int group, int channel) {
  const ConvShape& s = *task.shape;
  if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) return 0;
  const std::size_t pixel = static_cast<std::size_t>(y) * static_cast<std::size_t>(s.in_w) + static_cast<std::size_t>(x);
  const std::size_t word = pixel * static_cast<std::size_t>(s.words_per_pixel()) +
                           static_cast<std::size_t>(group * s.words_per_group() + channel / 64);
  return (task.input[word] >> (channel % 64)) & 1 ? 1 : -1;
}

void run(const ConvTask& task) {
  const ConvShape& s = *task.shape;
  const int per_group = s.in_per_group();
  begin_rows(s, *task.epilogue, task.row_begin, task.row_end);
  for (int y = task.row_begin; y < task.row_end; ++y) {
    for (int x = 0; x < s.out_w(); ++x) {
      for (int o = 0; o < s.out_channels; ++o) {
        const int group = o / s.out_per_group();
        const std::int8_t* weight = task.weights->data.as<std::int8_t>() +
                                    static_cast<std::size_t>(o) * static_cast<std::size_t>(s.taps() * per_group);
        std::int32_t dot = 0;
        for (int ky = 0; ky < s.kernel_h; ++ky) {
          for (int kx = 0; kx < s.kernel_w; ++kx) {
            const int in_y = y * s.stride_h + ky * s.dilation_h - s.pad_h;
            const int in_x = x * s.stride_w + kx * s.dilation_w - s.pad_w;
            for (int c = 0; c < per_group; ++c) dot += sign_at(task, in_y, in_x, group, c) * *weight++;
          }
        }
        const std::size_t row = static_cast<std::size_t>(y);
        finish_one(s, *task.epilogue, row * static_cast<std::size_t>(s.out_w()) + static_cast<std::size_t>(x), row, o,
                   dot);
      }
    }
  }
}

}  // namespace

const Kernel kReferenceKernel = {"reference", Isa::reference, supports, prepare, scratch_bytes, run};

}  // namespace ebnet
