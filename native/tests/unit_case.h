// A binary unit with random shapes and numbers, for the tests of training.
#pragma once
#include <cmath>
#include <initializer_list>
#include <random>
#include <vector>

#include "train/unit.h"

namespace ebnet::unit_test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline std::mt19937 generator(1);

inline int pick(std::initializer_list<int> values) { return values.begin()[generator() % values.size()]; }

inline std::size_t size(int a, int b = 1, int c = 1, int d = 1, int e = 1) {
  std::size_t product = 1;
  for (const int factor : {a, b, c, d, e}) product *= static_cast<std::size_t>(factor);
  return product;
}

inline Floats normal(std::size_t count) {
  std::normal_distribution<float> distribution;
  Floats values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

inline ConvShape random_shape() {
  ConvShape s;
  s.groups = pick({1, 1, 2, 3});
  s.in_channels = s.groups * pick({1, 3, 8, 17, 70});
  s.out_channels = s.groups * pick({1, 4, 7, 13, 30});
  s.kernel_h = pick({1, 2, 3, 5});
  s.kernel_w = pick({1, 3, 4});
  s.stride_h = pick({1, 1, 2, 3});
  s.stride_w = pick({1, 1, 2});
  s.pad_h = pick({0, 1, 2, 5});
  s.pad_w = pick({0, 1, 2, 4});
  s.dilation_h = pick({1, 1, 2});
  s.dilation_w = pick({1, 1, 2, 3});
  s.in_h = pick({1, 2, 4, 7, 19});
  s.in_w = pick({1, 3, 4, 7, 20});
  return s;
}

// A unit with all its parts, on numbers that lie far from where a sign or an estimator jumps.
struct Case {
  UnitLayer layer;
  std::size_t in = 0, out = 0, weights = 0, planes = 0;  // of one sample; of one expert; channels of the batch
  bool other_skip = false;
  Floats x, skip, dy, gamma, beta, mean, variance, theta, scale, bias, gate, gate_bias, squeeze, excite, slope;

  explicit Case(const ConvShape& s) {
    layer.shape = s;
    layer.batch = pick({1, 2, 5, 9});
    layer.experts = pick({1, 2, 4, 9});
    layer.binary_input = pick({0, 1}) == 1;
    layer.binary_weights = pick({0, 1}) == 1;
    layer.input_estimator = layer.binary_input ? static_cast<Estimator>(pick({0, 1, 2})) : Estimator::one;
    layer.training = !layer.binary_input && layer.batch > 1;
    layer.sigmoid = pick({0, 1}) == 1;
    layer.temperature = 0.7f;
    layer.hidden = pick({1, 3});
    layer.skips = pick({0, 1}) == 1;
    in = size(s.in_channels, s.in_h, s.in_w);
    out = size(s.out_channels, s.out_h(), s.out_w());
    weights = size(s.out_channels, s.in_per_group(), s.taps());
    planes = size(layer.batch, s.in_channels);
    other_skip = in != out || s.in_channels != s.out_channels || s.in_h != s.out_h();
    x = normal(size(layer.batch) * in);
    for (float& value : x) {
      const float away = std::fmod(std::fabs(value), 2.0f);
      value = std::copysign(away < 1.0f ? 0.1f + 0.8f * away : 0.2f + away, value);
    }
    skip = normal(size(layer.batch) * out);
    dy = normal(size(layer.batch) * out);
    theta = normal(size(layer.experts) * weights);
    scale = normal(size(s.out_channels));
    set(layer.bias, bias, size(s.out_channels));
    set(layer.slope, slope, layer.binary_input ? 0 : size(s.out_channels));
    layer.theta = theta.data();
    layer.scale = scale.data();
    if (pick({0, 1}) == 1) {
      gamma = Floats(size(s.in_channels), layer.training ? 1.3f : -1.0f);
      beta = Floats(size(s.in_channels), layer.training ? 0.2f : 0.0f);
      mean = Floats(size(s.in_channels), 0.0f);
      variance = Floats(size(s.in_channels), 1.0f);
      layer.eps = layer.training ? 1e-2 : 0.0;
      layer.gamma = gamma.data();
      layer.beta = beta.data();
      layer.running_mean = mean.data();
      layer.running_var = variance.data();
    }
    if (layer.experts > 1) {
      set(layer.gate, gate, size(layer.experts, s.in_channels));
      set(layer.gate_bias, gate_bias, size(layer.experts));
      layer.gate = gate.data();
    }
    if (pick({0, 1}) == 1) {
      set(layer.squeeze, squeeze, size(layer.hidden, s.in_channels));
      set(layer.excite, excite, size(s.out_channels, layer.hidden));
    } else {
      layer.hidden = 0;
    }
  }

  static void set(const float*& pointer, Floats& values, std::size_t count) {
    values = normal(count);
    if (count > 0) pointer = values.data();
  }
};

}  // namespace ebnet::unit_test
