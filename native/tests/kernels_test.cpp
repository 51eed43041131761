// Every binary convolution kernel this CPU runs, against the reference, over a sweep of shapes and types of the stream:
// dot products, stream, bits and row sums must be equal to the last bit. Buffers are exactly as large as the interface
// says, so a sanitizer sees any step outside.  kernels_test [cases] [start of the kernels' names]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bconv/bconv.h"

namespace {

using namespace ebnet;

struct Variant {
  const char* name;
  bool all;  // the epilogue of a network's body; otherwise dot products and stream only
  StreamType skip, stream;
};

constexpr Variant kWide[] = {
    {"bare", false, StreamType::fp32, StreamType::fp32},
    {"full", true, StreamType::fp32, StreamType::fp32},
};
// Shapes take turns with these: the reference takes most of the time.
constexpr Variant kNarrow[] = {
    {"fp16", true, StreamType::fp16, StreamType::fp16},
    {"bf16", true, StreamType::bf16, StreamType::bf16},
    {"fp16 to fp32", true, StreamType::fp16, StreamType::fp32},
    {"fp32 to bf16", true, StreamType::fp32, StreamType::bf16},
};

struct Case {
  ConvShape shape;
  Variant narrow;
  int bits_per_group;
  std::vector<std::uint8_t> canonical;
  std::vector<std::uint64_t> input;
  std::vector<float> scale, slope, skip, bn_scale, bn_shift;
};

struct Result {
  std::vector<std::int32_t> dots;
  std::vector<std::uint8_t> stream;
  std::vector<float> row_sums;
  std::vector<std::uint64_t> bits;
  bool operator==(const Result& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
    };
    return dots == other.dots && bits == other.bits && stream == other.stream && same(row_sums, other.row_sums);
  }
};

Case make_case(const ConvShape& shape, const Variant& narrow, int bits_per_group, std::mt19937& random) {
  Case c;
  c.shape = shape;
  c.narrow = narrow;
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

std::vector<std::uint8_t> stored(const std::vector<float>& values, StreamType type) {
  std::vector<std::uint8_t> bytes(values.size() * value_bytes(type));
  for (std::size_t i = 0; i < values.size(); ++i) store_value(bytes.data(), i, values[i], type);
  return bytes;
}

// Rows are run in two parts.
Result run(const Kernel& kernel, const Case& c, const Variant& variant) {
  const ConvShape& s = c.shape;
  const std::size_t channels = static_cast<std::size_t>(s.out_channels);
  const std::size_t pixels = static_cast<std::size_t>(s.out_h() * s.out_w());
  Result result;
  result.stream = stored(std::vector<float>(pixels * channels, -7.0f), variant.stream);
  const std::vector<std::uint8_t> skip = stored(c.skip, variant.skip);
  Epilogue e;
  e.stream = result.stream.data();
  e.stream_stride = channels;
  e.stream_type = variant.stream;
  e.scale = c.scale.data();
  if (variant.all) {
    result.row_sums.assign(static_cast<std::size_t>(s.out_h()) * channels, -7.0f);
    result.bits.assign(pixels * bit_words_per_pixel(s.out_channels, c.bits_per_group), ~std::uint64_t{0});
    e.slope = c.slope.data();
    e.skip = skip.data();
    e.skip_stride = channels;
    e.skip_type = variant.skip;
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

double products(const ConvShape& s) {
  return static_cast<double>(s.out_h() * s.out_w()) * s.out_channels * s.in_per_group() * s.taps();
}

std::map<const Kernel*, int> equal_shapes;
std::string wanted;  // what names of kernels start with

bool is_wanted(const Kernel& kernel) {
  return kernel.isa != Isa::reference && std::string(kernel.name).compare(0, wanted.size(), wanted) == 0;
}

int check(const Case& c) {
  const ConvShape& s = c.shape;
  const std::vector<Variant> variants = {kWide[0], kWide[1], c.narrow};
  int failures = 0;
  const Kernel& reference = select(s, Isa::reference);
  std::vector<Result> expected;
  for (const Variant& variant : variants) expected.push_back(run(reference, c, variant));
  for (const Kernel* kernel : all_kernels()) {
    if (!is_wanted(*kernel) || !cpu_supports(kernel->isa) || !kernel->supports(s)) continue;
    const int failures_before = failures;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (run(*kernel, c, variants[i]) == expected[i]) continue;
      std::printf("%s differs (%s epilogue): %d -> %d, groups %d, kernel %dx%d, stride %d, pad %d, dilation %d, %dx%d\n",
                  kernel->name, variants[i].name, s.in_channels, s.out_channels, s.groups, s.kernel_h, s.kernel_w,
                  s.stride_h, s.pad_h, s.dilation_h, s.in_h, s.in_w);
      ++failures;
    }
    if (failures == failures_before) ++equal_shapes[kernel];
  }
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 300;
  if (argc > 2) wanted = argv[2];
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
    // Smaller where the reference would take long, the height first: tiles lie along the width.
    while (s.valid() && products(s) > 3e6 && s.in_w > 4) (s.in_h > 3 ? s.in_h : s.in_w) /= 2;
    if (!s.valid()) continue;
    const int next_groups = random() % 2 == 0 ? s.groups : 1;
    failures += check(make_case(s, kNarrow[i % 4], s.out_channels / next_groups, random));
  }
  for (const Kernel* kernel : all_kernels()) {
    if (!is_wanted(*kernel)) continue;
    if (cpu_supports(kernel->isa)) {
      std::printf("%s: %d shapes equal the reference\n", kernel->name, equal_shapes[kernel]);
    } else {
      std::printf("%s: not run, this CPU lacks it\n", kernel->name);
    }
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
