#include "bconv/proof.h"

#include <algorithm>
#include <vector>

#include "bconv/kernels.h"
#include "bconv/made_up.h"
#include "bconv/timing.h"

namespace ebnet {
namespace {

constexpr double kMostMacs = 5e5;

std::size_t z(int value) { return static_cast<std::size_t>(value); }

template <typename T>
bool equal(const AlignedBytes& a, const AlignedBytes& b) {
  const std::size_t count = a.size() / sizeof(T);
  return std::equal(a.as<T>(), a.as<T>() + count, b.as<T>(), b.as<T>() + b.size() / sizeof(T));
}

// Not in vectors: a heap that has given such blocks back keeps some of their pages, which the process then carries on.
struct Numbers {
  AlignedBytes dots, stream, row_sums, bits;
  bool operator==(const Numbers& other) const {
    return equal<std::int32_t>(dots, other.dots) && equal<float>(stream, other.stream) &&
           equal<float>(row_sums, other.row_sums) && equal<std::uint64_t>(bits, other.bits);
  }
};

Numbers run(const Kernel& kernel, const ConvShape& shape, const MadeUpLayer& layer) {
  const std::size_t channels = z(shape.out_channels);
  const std::size_t pixels = z(shape.out_h()) * z(shape.out_w());
  Numbers numbers;
  numbers.dots = AlignedBytes(pixels * channels * sizeof(std::int32_t));
  numbers.stream = AlignedBytes(pixels * channels * sizeof(float));
  numbers.row_sums = AlignedBytes(z(shape.out_h()) * channels * sizeof(float));
  numbers.bits = AlignedBytes(pixels * bit_words_per_pixel(shape.out_channels, shape.out_channels) * sizeof(std::uint64_t));
  float* stream = numbers.stream.as<float>();
  for (std::size_t i = 0; i < pixels * channels; ++i) stream[i] = 0.01f * static_cast<float>(i * 37 % 201) - 1.0f;
  std::vector<float> scale(channels), slope(channels), bn_shift(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    scale[c] = 0.02f + 0.001f * static_cast<float>(c % 17);
    slope[c] = 0.25f - 0.03f * static_cast<float>(c % 13);
    bn_shift[c] = 0.1f * static_cast<float>(c % 7) - 0.3f;
  }
  Epilogue e;
  e.scale = e.bn_scale = scale.data();
  e.slope = slope.data();
  e.bn_shift = bn_shift.data();
  e.skip = e.stream = stream;
  e.skip_stride = e.stream_stride = channels;
  e.bits = numbers.bits.as<std::uint64_t>();
  e.bits_per_group = shape.out_channels;
  e.row_sums = numbers.row_sums.as<float>();
  e.dots = numbers.dots.as<std::int32_t>();
  const PackedWeights weights = kernel.prepare(layer.canonical.data(), shape);
  AlignedBytes scratch(kernel.scratch_bytes(shape));
  const int half = shape.out_h() / 2;
  kernel.run({&shape, &weights, layer.input.as<std::uint64_t>(), &e, 0, half, scratch.data()});
  kernel.run({&shape, &weights, layer.input.as<std::uint64_t>(), &e, half, shape.out_h(), scratch.data()});
  return numbers;
}

}  // namespace

bool agrees_with_portable(const Kernel& kernel, const ConvShape& shape) {
  const ConvShape part = shortened(shape, kMostMacs);
  const MadeUpLayer layer = made_up_layer(part);
  return run(kernel, part, layer) == run(kPortableKernel, part, layer);
}

}  // namespace ebnet
