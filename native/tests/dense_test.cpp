// The vector levels of the real-valued kernels against the scalar truth, over a sweep of shapes, in buffers exactly as
// large as the interface says.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "dense/dense.h"
#include "tests/levels.h"

namespace {

using namespace ebnet;
using Floats = std::vector<float>;

std::mt19937 generator(1);

int pick(std::initializer_list<int> values) { return values.begin()[generator() % values.size()]; }

Floats normal(std::size_t count) {
  std::normal_distribution<float> distribution;
  Floats values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

std::size_t size(int a, int b = 1, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

// Halves of every kind, subnormal ones included, and what they are as floats.
std::vector<Half> halves(std::size_t count) {
  std::vector<Half> values(count);
  for (Half& value : values) {
    do value = static_cast<Half>(generator());
    while (!is_finite(value) || (value & 0x7C00u) > 0x4000u);
  }
  return values;
}

Floats widened(const std::vector<Half>& values) {
  Floats floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = half_to_float(values[i]);
  return floats;
}

int failures = 0;

void expect_same(const char* what, DenseLevel level, const Floats& got, const Floats& expected) {
  if (got == expected) return;
  std::printf("%s %s: not float for float the same\n", dense_level_name(level), what);
  ++failures;
}

void compare(const char* what, DenseLevel level, const Floats& got, const Floats& expected, float tolerance = 1e-4f) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(got[i] - expected[i]) <= tolerance * (10.0f + std::fabs(expected[i]))) continue;
    std::printf("%s %s: value %zu is %g, expected %g\n", dense_level_name(level), what, i, static_cast<double>(got[i]),
                static_cast<double>(expected[i]));
    ++failures;
    return;
  }
}

void check_conv(DenseLevel level) {
  ConvShape s;
  s.in_channels = pick({1, 3, 16, 33});
  s.out_channels = pick({1, 8, 16, 20, 32, 50});
  s.kernel_h = s.kernel_w = pick({1, 3, 7});
  s.stride_h = s.stride_w = pick({1, 2, 3});
  s.pad_h = s.pad_w = pick({0, 1, 3});
  s.dilation_h = s.dilation_w = pick({1, 1, 2});
  s.in_h = pick({1, 2, 5, 9});
  s.in_w = pick({1, 6, 13, 29, 40});
  if (!s.valid()) return;
  const std::size_t channels = size(s.out_channels);
  const Activation activation = static_cast<Activation>(pick({0, 1, 2}));
  const Floats weights = normal(size(s.out_channels, s.in_channels, s.taps()));
  const Floats scale = normal(channels), shift = normal(channels), slope = normal(channels);
  const Floats input = normal(size(s.in_h, s.in_w, s.in_channels));
  const DenseConv conv = make_dense_conv(s, weights.data(), scale.data(), shift.data(), activation, slope.data());
  const auto run = [&](DenseLevel at) {
    Floats output(size(s.out_h(), s.out_w(), s.out_channels), -7.0f);
    const int middle = s.out_h() / 2;
    dense_conv(conv, s, input.data(), size(s.in_channels), output.data(), channels, 0, middle, at);
    dense_conv(conv, s, input.data(), size(s.in_channels), output.data(), channels, middle, s.out_h(), at);
    return output;
  };
  compare("convolution", level, run(level), run(DenseLevel::scalar));
}

void check_conv_of_halves(DenseLevel level) {
  ConvShape s;
  s.in_channels = pick({1, 5, 16});
  s.out_channels = pick({1, 16, 20, 50});
  s.kernel_h = s.kernel_w = pick({1, 3});
  s.pad_h = s.pad_w = pick({0, 1});
  s.in_h = pick({3, 5});
  s.in_w = pick({4, 13});
  const std::size_t channels = size(s.out_channels);
  const std::vector<Half> weights = halves(size(s.out_channels, s.in_channels, s.taps()));
  const Floats floats = widened(weights);
  const Floats scale = normal(channels), shift = normal(channels), slope = normal(channels);
  const Floats input = normal(size(s.in_h, s.in_w, s.in_channels));
  const auto run = [&](const DenseConv& conv) {
    Floats output(size(s.out_h(), s.out_w(), s.out_channels), -7.0f);
    AlignedBytes scratch(dense_scratch_bytes(conv));
    dense_conv(conv, s, input.data(), size(s.in_channels), output.data(), channels, 0, 1, level, scratch.data());
    dense_conv(conv, s, input.data(), size(s.in_channels), output.data(), channels, 1, s.out_h(), level, scratch.data());
    return output;
  };
  const auto prelu = Activation::prelu;
  expect_same("convolution of halves", level,
              run(make_dense_conv(s, weights.data(), scale.data(), shift.data(), prelu, slope.data())),
              run(make_dense_conv(s, floats.data(), scale.data(), shift.data(), prelu, slope.data())));
}

void check_conv_in_place(DenseLevel level) {
  ConvShape s;
  s.in_channels = pick({1, 7, 16, 40});
  s.out_channels = std::min(s.in_channels, pick({1, 6, 16}));
  s.in_h = pick({1, 3});
  s.in_w = pick({1, 6, 29});
  if (!runs_in_place(s)) {
    std::printf("expected to run in place\n");
    ++failures;
    return;
  }
  const std::size_t stride = size(s.in_channels);
  const Floats weights = normal(size(s.out_channels, s.in_channels)), shift = normal(size(s.out_channels));
  const DenseConv conv = make_dense_conv(s, weights.data(), nullptr, shift.data(), Activation::relu, nullptr);
  Floats input = normal(size(s.in_h, s.in_w, s.in_channels));
  Floats expected = input;
  dense_conv(conv, s, input.data(), stride, expected.data(), stride, 0, s.in_h, level);
  dense_conv(conv, s, input.data(), stride, input.data(), stride, 0, s.in_h, level);
  expect_same("convolution in place", level, input, expected);
}

void check_pools(DenseLevel level) {
  PoolShape s;
  s.channels = pick({1, 7, 8, 19, 32});
  s.kernel = pick({1, 2, 3});
  s.stride = pick({1, 2, 3});
  s.pad = s.kernel == 1 ? 0 : pick({0, 1});
  s.in_h = pick({3, 4, 7});
  s.in_w = pick({3, 5, 12});
  s.ceil_mode = pick({0, 1}) == 1;
  const Floats input = normal(size(s.in_h, s.in_w, s.channels));
  for (const auto pool : {max_pool, average_pool}) {
    const auto run = [&](DenseLevel at) {
      Floats output(size(s.out_h(), s.out_w(), s.channels), -7.0f);
      pool(s, input.data(), size(s.channels), output.data(), size(s.channels), 0, s.out_h(), at);
      return output;
    };
    compare(pool == max_pool ? "maximum" : "average", level, run(level), run(DenseLevel::scalar));
  }
  const auto global = [&](DenseLevel at) {
    Floats output(size(s.channels), -7.0f);
    global_average_pool(input.data(), size(s.channels), s.in_h * s.in_w, s.channels, output.data(), at);
    return output;
  };
  compare("global average", level, global(level), global(DenseLevel::scalar));
  const auto means = [&](DenseLevel at) {
    Floats output(size(s.channels), -7.0f);
    row_means(input.data(), s.in_h * s.in_w, s.channels, 3.0, output.data(), at);
    return output;
  };
  compare("row means", level, means(level), means(DenseLevel::scalar), 0.0f);
}

void check_linear(DenseLevel level) {
  const int inputs = pick({1, 7, 16, 33, 64}), outputs = pick({1, 3, 4, 10});
  const Floats weights = normal(size(inputs, outputs)), input = normal(size(inputs));
  const Floats bias = normal(size(outputs)), slope = normal(size(outputs));
  const Activation activation = static_cast<Activation>(pick({0, 1, 2}));
  const auto run = [&](DenseLevel at) {
    Floats output(size(outputs), -7.0f);
    linear(weights.data(), bias.data(), slope.data(), activation, input.data(), inputs, outputs, output.data(), at);
    return output;
  };
  compare("linear", level, run(level), run(DenseLevel::scalar));

  const std::vector<Half> narrow = halves(weights.size());
  const Floats wide = widened(narrow);
  Floats got(size(outputs), -7.0f), expected(size(outputs), 7.0f);
  linear(narrow.data(), bias.data(), slope.data(), activation, input.data(), inputs, outputs, got.data(), level);
  linear(wide.data(), bias.data(), slope.data(), activation, input.data(), inputs, outputs, expected.data(), level);
  expect_same("linear of halves", level, got, expected);
}

}  // namespace

int main(int argc, char** argv) {
  return run_levels(argc, argv, 200, failures,
                    in_each_case(check_conv, check_conv_of_halves, check_conv_in_place, check_pools, check_linear));
}
