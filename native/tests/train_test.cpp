// Every level of the training kernels against the formulas in plain loops and double precision, over a sweep of shapes,
// in buffers exactly as large as the interface says.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/levels.h"
#include "train/expert_conv.h"

namespace {

using namespace ebnet;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

std::mt19937 generator(1);

int pick(std::initializer_list<int> values) { return values.begin()[generator() % values.size()]; }

std::size_t size(int a, int b = 1, int c = 1, int d = 1, int e = 1) {
  std::size_t product = 1;
  for (const int factor : {a, b, c, d, e}) product *= static_cast<std::size_t>(factor);
  return product;
}

Floats normal(std::size_t count) {
  std::normal_distribution<float> distribution;
  Floats values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

std::vector<std::int64_t> random_experts(int batch, int experts) {
  std::vector<std::int64_t> chosen(size(batch));
  for (std::int64_t& expert : chosen) expert = static_cast<std::int64_t>(generator() % static_cast<unsigned>(experts));
  return chosen;
}

ConvShape random_shape() {
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

int failures = 0;

// In a thread of its own, whose scratch is fresh and exactly as large as this call asks for.
template <typename Call>
void afresh(Call call) {
  std::thread(call).join();
}

// Rounding: a part in 1e5 of what the terms' absolute values add up to.
void compare(const char* what, DenseLevel level, const Floats& got, const Doubles& expected, const Doubles& terms) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(static_cast<double>(got[i]) - expected[i]) <= 1e-5 * terms[i]) continue;
    std::printf("%s %s: value %zu is %g, expected %g\n", dense_level_name(level), what, i, static_cast<double>(got[i]),
                expected[i]);
    ++failures;
    return;
  }
}

double derivative(Estimator estimator, double theta) {
  if (estimator == Estimator::one) return 1.0;
  if (std::fabs(theta) > 1.0) return 0.0;
  return estimator == Estimator::clip ? 1.0 : 2.0 - 2.0 * std::fabs(theta);
}

// Calls visit(output, weight, input) for the indices within one sample of every product of a convolution.
template <typename Visit>
void for_products(const ConvShape& s, Visit visit) {
  for (int o = 0; o < s.out_channels; ++o) {
    for (int c = 0; c < s.in_per_group(); ++c) {
      for (int tap = 0; tap < s.taps(); ++tap) {
        for (int y = 0; y < s.out_h(); ++y) {
          for (int x = 0; x < s.out_w(); ++x) {
            const int in_y = y * s.stride_h + tap / s.kernel_w * s.dilation_h - s.pad_h;
            const int in_x = x * s.stride_w + tap % s.kernel_w * s.dilation_w - s.pad_w;
            if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
            const int channel = o / s.out_per_group() * s.in_per_group() + c;
            visit(static_cast<std::size_t>((o * s.out_h() + y) * s.out_w() + x),
                  static_cast<std::size_t>((o * s.in_per_group() + c) * s.taps() + tap),
                  static_cast<std::size_t>((channel * s.in_h + in_y) * s.in_w + in_x));
          }
        }
      }
    }
  }
}

void check_sample_gradients(DenseLevel level, int threads) {
  const ConvShape s = random_shape();
  if (!s.valid()) return;
  const int batch = pick({0, 1, 2, 5}), experts = pick({1, 2, 4, 9});
  const std::size_t weights = size(s.out_channels, s.in_per_group(), s.taps());
  const std::size_t in = size(s.in_channels, s.in_h, s.in_w), out = size(s.out_channels, s.out_h(), s.out_w());
  const Floats x = normal(size(batch) * in), dy = normal(size(batch) * out), theta = normal(size(experts) * weights);
  const std::vector<std::int64_t> chosen = random_experts(batch, experts);
  Floats dtheta(theta.size(), -7.0f), dgate(size(batch, experts), -7.0f);
  SampleGradients task;
  task.shape = s;
  task.batch = batch;
  task.experts = experts;
  task.estimator = static_cast<Estimator>(pick({0, 1, 2}));
  task.x = x.data();
  task.dy = dy.data();
  task.theta = theta.data();
  task.chosen = chosen.data();
  task.dtheta = dtheta.data();
  task.dgate = dgate.data();
  afresh([&] { sample_gradients(task, threads, level); });

  Doubles weight_gradient(dtheta.size()), weight_terms(dtheta.size()), gate(dgate.size()), gate_terms(dgate.size());
  for (std::size_t b = 0; b < size(batch); ++b) {
    const std::size_t first = static_cast<std::size_t>(chosen[b]) * weights;
    Doubles gradient(weights), terms(weights);
    for_products(s, [&](std::size_t output, std::size_t weight, std::size_t input) {
      const double slope = derivative(task.estimator, static_cast<double>(theta[first + weight]));
      const double term = slope * static_cast<double>(dy[b * out + output]) * static_cast<double>(x[b * in + input]);
      gradient[weight] += term;
      terms[weight] += std::fabs(term);
    });
    for (std::size_t w = 0; w < weights; ++w) {
      weight_gradient[first + w] += gradient[w];
      weight_terms[first + w] += terms[w];
      for (std::size_t i = 0; i < size(experts); ++i) {
        const double value = static_cast<double>(theta[i * weights + w]);
        gate[b * size(experts) + i] += gradient[w] * value;
        gate_terms[b * size(experts) + i] += terms[w] * std::fabs(value);
      }
    }
  }
  compare("weight gradient", level, dtheta, weight_gradient, weight_terms);
  compare("gate gradient", level, dgate, gate, gate_terms);
}

void check_convolutions(DenseLevel level, int threads) {
  const ConvShape s = random_shape();
  if (!s.valid()) return;
  const int batch = pick({0, 1, 2, 5}), experts = pick({1, 2, 4});
  const std::size_t weights = size(s.out_channels, s.in_per_group(), s.taps());
  const std::size_t in = size(s.in_channels, s.in_h, s.in_w), out = size(s.out_channels, s.out_h(), s.out_w());
  const Floats x = normal(size(batch) * in), dy = normal(size(batch) * out), theta = normal(size(experts) * weights);
  const std::vector<std::int64_t> chosen = random_experts(batch, experts);
  Floats y(dy.size(), -7.0f), dx(x.size(), -7.0f);
  ExpertConv task;
  task.shape = s;
  task.batch = batch;
  task.experts = experts;
  task.binary = pick({0, 1}) == 1;
  task.theta = theta.data();
  task.chosen = chosen.data();
  task.from = x.data();
  task.to = y.data();
  afresh([&] { expert_forward(task, threads, level); });
  task.from = dy.data();
  task.to = dx.data();
  afresh([&] { expert_input_gradient(task, threads, level); });

  Doubles forward(y.size()), forward_terms(y.size()), backward(dx.size()), backward_terms(dx.size());
  for (std::size_t b = 0; b < size(batch); ++b) {
    for_products(s, [&](std::size_t output, std::size_t weight, std::size_t input) {
      const double latent = static_cast<double>(theta[static_cast<std::size_t>(chosen[b]) * weights + weight]);
      const double used = task.binary ? (latent >= 0.0 ? 1.0 : -1.0) : latent;
      const double up = used * static_cast<double>(x[b * in + input]);
      const double down = used * static_cast<double>(dy[b * out + output]);
      forward[b * out + output] += up;
      forward_terms[b * out + output] += std::fabs(up);
      backward[b * in + input] += down;
      backward_terms[b * in + input] += std::fabs(down);
    });
  }
  compare("forward", level, y, forward, forward_terms);
  compare("input gradient", level, dx, backward, backward_terms);
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 200;
  for (const DenseLevel level : {DenseLevel::scalar, DenseLevel::avx2, DenseLevel::avx512}) {
    if (!runs_here(level)) {
      std::printf("%s: not run, this CPU lacks it\n", title(level).c_str());
      continue;
    }
    for (int i = 0; i < cases; ++i) {
      check_sample_gradients(level, 1 + i % 3);
      check_convolutions(level, 1 + i % 3);
    }
    std::printf("%s: ran\n", title(level).c_str());
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
