#include "bconv/timing.h"

#include <chrono>

namespace ebnet {
namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

KernelTiming::KernelTiming(const Kernel& kernel, const ConvShape& shape) : kernel_(kernel), shape_(shape) {
  std::uint64_t state = 1;
  const auto random = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 32; };
  std::vector<std::uint8_t> canonical(shape_.canonical_bytes());
  for (auto& byte : canonical) byte = static_cast<std::uint8_t>(random());
  weights_ = kernel_.prepare(canonical.data(), shape_);
  scratch_ = AlignedBytes(kernel_.scratch_bytes(shape_));
  const std::size_t channels = z(shape_.out_channels);
  const std::size_t pixels = z(shape_.out_h()) * z(shape_.out_w());
  const int tail = shape_.in_per_group() % 64;
  input_.resize(z(shape_.in_h) * z(shape_.in_w) * z(shape_.words_per_pixel()));
  for (std::size_t i = 0; i < input_.size(); ++i) {
    const bool last = (i + 1) % z(shape_.words_per_group()) == 0;
    input_[i] = (random() << 32 | random()) & (last && tail != 0 ? (std::uint64_t{1} << tail) - 1 : ~std::uint64_t{0});
  }
  parameters_.assign(channels, 0.01f);
  stream_.assign(pixels * channels, 0.0f);
  row_sums_.resize(z(shape_.out_h()) * channels);
  bits_.resize(pixels * bit_words_per_pixel(shape_.out_channels, shape_.out_per_group()));
}

double KernelTiming::seconds(bool fused) {
  Epilogue e;
  if (fused) {
    e.scale = e.slope = e.bn_scale = e.bn_shift = parameters_.data();
    e.skip = e.stream = stream_.data();
    e.skip_stride = e.stream_stride = z(shape_.out_channels);
    e.bits = bits_.data();
    e.bits_per_group = shape_.out_per_group();
    e.row_sums = row_sums_.data();
  }
  const double start = now();
  kernel_.run({&shape_, &weights_, input_.data(), &e, 0, shape_.out_h(), scratch_.data()});
  return now() - start;
}

double KernelTiming::macs_of(const ConvShape& shape) {
  return static_cast<double>(shape.out_h()) * shape.out_w() * shape.out_channels * shape.in_per_group() * shape.taps();
}

}  // namespace ebnet
