// The levels of the int8 layers against plain loops: the same bits, over a sweep of shapes.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "dense/int8.h"

namespace {

using namespace ebnet;
using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

std::mt19937 generator(1);
int failures = 0;

int pick(std::initializer_list<int> values) { return values.begin()[generator() % values.size()]; }

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count + kInt8Slack);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

// Of many sizes, so that sums are rounded at every place.
Floats random_floats(std::size_t count) {
  Floats floats(count);
  std::normal_distribution<float> normal;
  for (float& value : floats) value = std::ldexp(normal(generator), pick({-20, -9, -3, 0, 4}));
  return floats;
}

std::size_t size(int a, int b = 1, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

template <typename T>
void expect_same(const char* what, Int8Level level, const std::vector<T>& got, const std::vector<T>& expected) {
  if (std::memcmp(got.data(), expected.data(), expected.size() * sizeof(T)) == 0) return;
  std::printf("%s %s: not the same bits\n", int8_level_name(level), what);
  ++failures;
}

void check_conv(Int8Level level) {
  ConvShape s;
  s.in_channels = pick({1, 3, 4, 7, 16, 33, 64});
  s.out_channels = pick({1, 5, 16, 17, 32, 48, 70});
  s.kernel_h = s.kernel_w = pick({1, 1, 3, 7});
  s.stride_h = s.stride_w = pick({1, 2});
  s.pad_h = s.pad_w = pick({0, s.kernel_h / 2});
  s.in_h = s.kernel_h + pick({0, 1, 4});
  s.in_w = s.kernel_w + pick({0, 2, 13});
  const Bytes coded = random_bytes(size(s.out_channels, s.in_channels, s.taps()));
  std::vector<std::int8_t> weights;
  for (const std::uint8_t byte : coded) weights.push_back(static_cast<std::int8_t>(byte % 129 - 64));
  const Bytes zeros = random_bytes(size(s.in_channels));
  const Floats multiplier = random_floats(size(s.out_channels)), shift = random_floats(size(s.out_channels));
  const Floats slope = random_floats(size(s.out_channels));
  const auto activation = static_cast<Activation>(generator() % 3);
  const Int8Conv conv = make_int8_conv(s, weights.data(), zeros.data(), multiplier.data(), shift.data(), activation,
                                       slope.data());
  const std::size_t in_stride = size(s.in_channels) + size(pick({0, 3}));
  const std::size_t out_stride = size(s.out_channels) + size(pick({0, 5}));
  const Bytes input = random_bytes(size(s.in_h, s.in_w) * in_stride);
  const std::size_t results = size(s.out_h(), s.out_w()) * out_stride;
  const ByteCode code{std::ldexp(1.0f + static_cast<float>(generator() % 7) / 8.0f, pick({-6, 0, 5})), pick({0, 128, 200})};
  Bytes scratch(int8_scratch_bytes(conv));
  const auto run = [&](Int8Level by, Floats* reals, Bytes* bytes) {
    const Int8Output output{reals ? reals->data() : nullptr, bytes ? bytes->data() : nullptr, out_stride, code};
    int8_conv(conv, s, input.data(), in_stride, output, 0, s.out_h(), by, scratch.data());
  };
  Floats reals(results), expected_reals(results);
  run(level, &reals, nullptr);
  run(Int8Level::scalar, &expected_reals, nullptr);
  expect_same("conv to floats", level, reals, expected_reals);
  Bytes bytes(results), expected_bytes(results);
  run(level, nullptr, &bytes);
  run(Int8Level::scalar, nullptr, &expected_bytes);
  expect_same("conv to bytes", level, bytes, expected_bytes);
}

// A sum that a float and a double round differently: (2^23 + 1) * 2^-47 (1 - 2^-23) + (1 + 2^-23) is 2^-70 below the middle
// of two floats, where a double already sees the middle.
void check_single_rounding(Int8Level level) {
  ConvShape s;
  s.in_channels = 1024;
  s.out_channels = 16;
  std::vector<std::int8_t> weights(size(s.in_channels, s.out_channels), 64);
  for (std::size_t o = 0; o < 16; ++o) weights[o * 1024] = 1;
  Bytes input(size(s.in_channels) + kInt8Slack, 128);  // 1 + 64 * (1021 * 128 + 2 * 192) = 2^23 + 1
  input[0] = 1;
  input[1] = input[2] = 192;
  const Bytes zeros(size(s.in_channels), 0);
  const Floats multiplier(16, std::ldexp(1.0f - 0x1p-23f, -47)), shift(16, 1.0f + 0x1p-23f);
  const Int8Conv conv = make_int8_conv(s, weights.data(), zeros.data(), multiplier.data(), shift.data(), Activation::none,
                                       nullptr);
  Floats got(16);
  int8_linear(conv, input.data(), {got.data(), nullptr, 16, {}}, 0, 1, level);
  expect_same("a sum rounded once", level, got, Floats(16, 1.0f + 0x1p-23f));
}

void check_bytes(Int8Level level) {
  const int channels = pick({1, 15, 16, 33}), pixels = pick({1, 5});
  Floats input = random_floats(size(pixels, channels));
  input[generator() % input.size()] = pick({0, 1}) != 0 ? NAN : -INFINITY;
  const Floats inverse = random_floats(size(channels)), zero = random_floats(size(channels));
  Bytes got(input.size()), expected(input.size());
  to_bytes(input.data(), size(channels), pixels, channels, inverse.data(), zero.data(), got.data(), size(channels), level);
  to_bytes(input.data(), size(channels), pixels, channels, inverse.data(), zero.data(), expected.data(), size(channels),
           Int8Level::scalar);
  expect_same("to_bytes", level, got, expected);
}

void check_pool(Int8Level level) {
  PoolShape s;
  s.channels = pick({1, 16, 40, 64});
  s.kernel = pick({2, 3});
  s.stride = 2;
  s.pad = s.kernel / 2;
  s.in_h = s.in_w = pick({4, 7});
  const Bytes input = random_bytes(size(s.in_h, s.in_w, s.channels));
  Bytes got(size(s.out_h(), s.out_w(), s.channels)), expected(got.size());
  max_pool_bytes(s, input.data(), size(s.channels), got.data(), size(s.channels), 0, s.out_h(), level);
  max_pool_bytes(s, input.data(), size(s.channels), expected.data(), size(s.channels), 0, s.out_h(), Int8Level::scalar);
  expect_same("max_pool", level, got, expected);
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 200;
  for (const Int8Level level : kInt8Levels) {
    if (!cpu_supports(level)) {
      std::printf("%s: not run, this CPU lacks it\n", int8_level_name(level));
      continue;
    }
    for (int i = 0; i < cases; ++i) {
      check_conv(level);
      check_single_rounding(level);
      check_bytes(level);
      check_pool(level);
    }
    std::printf("%s: ran\n", int8_level_name(level));
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
