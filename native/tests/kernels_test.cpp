// Every binary convolution kernel this CPU runs, against the reference, over a sweep of shapes: dot products, stream,
// bits and row sums must be equal to the last bit. Buffers are exactly as large as the interface says, so a sanitizer
// sees any step outside.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "bconv/bconv.h"

namespace {

using namespace ebnet;

struct Case {
  ConvShape shape;
  int bits_per_group;
  std::vector<std::uint8_t> canonical;
  std::vector<std::uint64_t> input;
  std::vector<float> scale, slope, skip, bn_scale, bn_shift;
};

struct Result {
  std::vector<std::int32_t> dots;
  std::vector<float> stream, row_sums;
  std::vector<std::uint64_t> bits;
  bool operator==(const Result& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
    };
    return dots == other.dots && bits == other.bits && same(stream, other.stream) && same(row_sums, other.row_sums);
  }
};

Case make_case(const ConvShape& shape, int bits_per_group, std::mt19937& random) {
  Case c;
  c.shape = shape;
  c.bits_per_group = bits_per_group;
  c.canonical.resize(shape.canonical_bytes());
  for (auto& byte : c.canonical) byte = static_cast<std::uint8_t>(random());
  c.input.resize(static_cast<std::size_t>(shape.in_h * shape.in_w * shape.words_per_pixel()));
  for (std::size_t i = 0; i < c.input.size(); ++i) {
    const int left = shape.in_per_group() - static_cast<int>(i % static_cast<std::size_t>(shape.words_per_group())) * 64;
    const std::uint64_t used = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    c.input[i] = ((static_cast<std::uint64_t>(random()) << 32) | random()) & used;
  }
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<float>& values, std::size_t count) {
    values.resize(count);
    for (auto& value : values) value = normal(random);
  };
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  fill(c.scale, channels);
  fill(c.slope, channels);
  fill(c.bn_scale, channels);
  fill(c.bn_shift, channels);
  fill(c.skip, channels * static_cast<std::size_t>(shape.out_h() * shape.out_w()));
  return c;
}

// `all`: the epilogue of a network's body; otherwise dot products and stream only. Rows are run in two parts.
Result run(const Kernel& kernel, const Case& c, bool all) {
  const ConvShape& s = c.shape;
  const std::size_t channels = static_cast<std::size_t>(s.out_channels);
  const std::size_t pixels = static_cast<std::size_t>(s.out_h() * s.out_w());
  Result result;
  result.stream.assign(pixels * channels, -7.0f);
  Epilogue e;
  e.stream = result.stream.data();
  e.stream_stride = channels;
  e.scale = c.scale.data();
  if (all) {
    result.row_sums.assign(static_cast<std::size_t>(s.out_h()) * channels, -7.0f);
    result.bits.assign(pixels * bit_words_per_pixel(s.out_channels, c.bits_per_group), ~std::uint64_t{0});
    e.slope = c.slope.data();
    e.skip = c.skip.data();
    e.skip_stride = channels;
    e.bn_scale = c.bn_scale.data();
    e.bn_shift = c.bn_shift.data();
    e.bits = result.bits.data();
    e.bits_per_group = c.bits_per_group;
    e.row_sums = result.row_sums.data();
  } else {
    result.dots.assign(pixels * channels, -7);
    e.dots = result.dots.data();
  }
  const PackedWeights weights = kernel.prepare(c.canonical.data(), s);
  AlignedBytes scratch(kernel.scratch_bytes(s));
  std::fill_n(scratch.data(), scratch.size(), std::uint8_t{0x55});  // as if another layer had left it
  const int middle = s.out_h() / 2;
  kernel.run({&s, &weights, c.input.data(), &e, 0, middle, scratch.data()});
  kernel.run({&s, &weights, c.input.data(), &e, middle, s.out_h(), scratch.data()});
  return result;
}

int check(const Case& c) {
  int failures = 0;
  const Kernel& reference = select(c.shape, Isa::reference);
  for (const bool all : {false, true}) {
    const Result expected = run(reference, c, all);
    for (const Kernel* kernel : all_kernels()) {
      if (kernel == &reference || !cpu_supports(kernel->isa) || !kernel->supports(c.shape)) continue;
      if (run(*kernel, c, all) == expected) continue;
      const ConvShape& s = c.shape;
      std::printf("%s differs (%s epilogue): %d -> %d, groups %d, kernel %dx%d, stride %d, pad %d, dilation %d, %dx%d\n",
                  kernel->name, all ? "full" : "bare", s.in_channels, s.out_channels, s.groups, s.kernel_h, s.kernel_w,
                  s.stride_h, s.pad_h, s.dilation_h, s.in_h, s.in_w);
      ++failures;
    }
  }
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 300;
  std::mt19937 random(1);
  const auto pick = [&](std::initializer_list<int> values) { return values.begin()[random() % values.size()]; };
  int failures = 0;
  for (int i = 0; i < cases; ++i) {
    ConvShape s;
    s.groups = pick({1, 1, 2, 3, 4});
    s.in_channels = s.groups * pick({1, 2, 3, 8, 16, 24, 31, 32, 48, 64, 65, 100, 128, 260});
    s.out_channels = s.groups * pick({1, 2, 5, 8, 16, 24, 32, 33, 48, 64, 72, 130});
    s.kernel_h = pick({1, 3, 3, 5});
    s.kernel_w = pick({1, 3, 3, 5});
    s.stride_h = pick({1, 1, 2});
    s.stride_w = pick({1, 1, 2});
    s.pad_h = pick({0, 1, 2});
    s.pad_w = pick({0, 1, 2, 3});
    s.dilation_h = pick({1, 1, 2});
    s.dilation_w = pick({1, 1, 2});
    s.in_h = 1 + static_cast<int>(random() % 9);
    s.in_w = 1 + static_cast<int>(random() % 40);
    if (!s.valid()) continue;
    const int next_groups = random() % 2 == 0 ? s.groups : 1;
    failures += check(make_case(s, s.out_channels / next_groups, random));
  }
  for (const Kernel* kernel : all_kernels()) {
    std::printf("%s: %s\n", kernel->name, cpu_supports(kernel->isa) ? "ran" : "not run, this CPU lacks it");
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
