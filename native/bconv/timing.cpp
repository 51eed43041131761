#include "bconv/timing.h"

#include <algorithm>
#include <chrono>

#include "bconv/made_up.h"

namespace ebnet {
namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ConvShape shortened(ConvShape shape, double macs) {
  const double share = macs / KernelTiming::macs_of(shape);
  if (share >= 1) return shape;
  const int rows = std::max(1, static_cast<int>(shape.out_h() * share));
  const int reach = (rows - 1) * shape.stride_h + shape.dilation_h * (shape.kernel_h - 1) + 1;
  shape.in_h = std::max(1, reach - 2 * shape.pad_h);
  return shape;
}

KernelTiming::KernelTiming(const Kernel& kernel, const ConvShape& shape) : kernel_(kernel), shape_(shape) {
  MadeUpLayer layer = made_up_layer(shape_);
  weights_ = kernel_.prepare(layer.canonical.data(), shape_);
  input_ = std::move(layer.input);
  scratch_ = AlignedBytes(kernel_.scratch_bytes(shape_));
  const std::size_t channels = z(shape_.out_channels);
  const std::size_t pixels = z(shape_.out_h()) * z(shape_.out_w());
  parameters_.assign(channels, 0.01f);
  stream_ = AlignedBytes(pixels * channels * sizeof(float));
  row_sums_ = AlignedBytes(z(shape_.out_h()) * channels * sizeof(float));
  bits_ = AlignedBytes(pixels * bit_words_per_pixel(shape_.out_channels, shape_.out_per_group()) * sizeof(std::uint64_t));
}

double KernelTiming::seconds(bool fused) {
  Epilogue e;
  if (fused) {
    e.scale = e.slope = e.bn_scale = e.bn_shift = parameters_.data();
    e.skip = e.stream = stream_.as<float>();
    e.skip_stride = e.stream_stride = z(shape_.out_channels);
    e.bits = bits_.as<std::uint64_t>();
    e.bits_per_group = shape_.out_per_group();
    e.row_sums = row_sums_.as<float>();
  }
  const double start = now();
  kernel_.run({&shape_, &weights_, input_.as<std::uint64_t>(), &e, 0, shape_.out_h(), scratch_.data()});
  return now() - start;
}

double KernelTiming::macs_of(const ConvShape& shape) {
  return static_cast<double>(shape.out_h()) * shape.out_w() * shape.out_channels * shape.in_per_group() * shape.taps();
}

}  // namespace ebnet
