// Every level of the binary unit against its formulas in plain loops and double precision, over a sweep of shapes, in
// buffers exactly as large as the interface says.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/levels.h"
#include "train/unit.h"

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

double as_double(float value) { return static_cast<double>(value); }

// Rounding: a part in 1e4 of the largest value.
void compare(const char* what, DenseLevel level, const Floats& got, const Doubles& expected) {
  double largest = 1e-2;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(as_double(got[i]) - expected[i]) <= 1e-4 * largest) continue;
    std::printf("%s %s: value %zu is %g, expected %g\n", dense_level_name(level), what, i, as_double(got[i]),
                expected[i]);
    ++failures;
    return;
  }
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

double estimated(Estimator estimator, double n) {
  if (estimator == Estimator::one) return 1.0;
  if (std::fabs(n) > 1.0) return 0.0;
  return estimator == Estimator::clip ? 1.0 : 2.0 - 2.0 * std::fabs(n);
}

double signed_of(bool binary, double value) { return !binary ? value : value >= 0.0 ? 1.0 : -1.0; }

// The formulas of train/unit.h, one number at a time.
struct Reference {
  const Case& c;
  const UnitLayer& layer;
  const ConvShape& s;
  std::size_t batch, channels, outs, experts, plane, map;
  Doubles rstd, hat, n, means, logits, hidden, factor, conv, y;

  explicit Reference(const Case& of)
      : c(of), layer(c.layer), s(c.layer.shape), batch(size(layer.batch)), channels(size(s.in_channels)),
        outs(size(s.out_channels)), experts(size(layer.experts)), plane(c.in / channels), map(c.out / outs) {}

  double parameter(const Floats& values, std::size_t i, double otherwise) const {
    return values.empty() ? otherwise : as_double(values[i]);
  }

  void normalise() {
    rstd.assign(channels, 1.0);
    Doubles mean(channels);
    for (std::size_t ch = 0; ch < channels && layer.gamma != nullptr; ++ch) {
      double sum = 0.0, squares = 0.0;
      for (std::size_t i = 0; i < batch * plane; ++i) sum += as_double(c.x[(i / plane * channels + ch) * plane + i % plane]);
      mean[ch] = layer.training ? sum / static_cast<double>(batch * plane) : 0.0;
      for (std::size_t i = 0; i < batch * plane; ++i) {
        const double off = as_double(c.x[(i / plane * channels + ch) * plane + i % plane]) - mean[ch];
        squares += off * off;
      }
      const double variance = layer.training ? squares / static_cast<double>(batch * plane) : 1.0;
      rstd[ch] = 1.0 / std::sqrt(variance + layer.eps);
    }
    hat.resize(c.x.size());
    n.resize(c.x.size());
    means.assign(batch * channels, 0.0);
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      const std::size_t ch = i / plane % channels;
      hat[i] = (as_double(c.x[i]) - mean[ch]) * rstd[ch];
      n[i] = hat[i] * parameter(c.gamma, ch, 1.0) + parameter(c.beta, ch, 0.0);
      means[i / plane] += n[i] / static_cast<double>(plane);
    }
  }

  // False where two experts are too close to tell.
  bool choose(const std::vector<std::int64_t>& chosen) {
    logits.assign(batch * experts, 0.0);
    hidden.assign(batch * size(layer.hidden), 0.0);
    factor.assign(batch * outs, 1.0);
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t i = 0; i < experts && layer.gate != nullptr; ++i) {
        double& z = logits[b * experts + i];
        z = as_double(c.gate_bias[i]);
        for (std::size_t ch = 0; ch < channels; ++ch) z += as_double(c.gate[i * channels + ch]) * means[b * channels + ch];
      }
      const double best = logits[b * experts + static_cast<std::size_t>(chosen[b])];
      for (std::size_t i = 0; i < experts; ++i) {
        if (static_cast<std::int64_t>(i) != chosen[b] && logits[b * experts + i] > best - 1e-4) return false;
      }
      for (std::size_t j = 0; j < size(layer.hidden); ++j) {
        double q = 0.0;
        for (std::size_t ch = 0; ch < channels; ++ch) q += as_double(c.squeeze[j * channels + ch]) * means[b * channels + ch];
        if (std::fabs(q) < 1e-4) return false;
        hidden[b * size(layer.hidden) + j] = std::max(q, 0.0);
      }
      for (std::size_t o = 0; o < outs && layer.hidden > 0; ++o) {
        double u = 0.0;
        for (std::size_t j = 0; j < size(layer.hidden); ++j) {
          u += as_double(c.excite[o * size(layer.hidden) + j]) * hidden[b * size(layer.hidden) + j];
        }
        factor[b * outs + o] = 1.0 / (1.0 + std::exp(-u));
      }
    }
    return true;
  }

  // False where PReLU's side is too close to tell.
  bool forward(const std::vector<std::int64_t>& chosen) {
    conv.assign(batch * c.out, 0.0);
    y.assign(batch * c.out, 0.0);
    for (std::size_t b = 0; b < batch; ++b) {
      for_products(s, [&](std::size_t output, std::size_t weight, std::size_t input) {
        const double latent = as_double(c.theta[static_cast<std::size_t>(chosen[b]) * c.weights + weight]);
        conv[b * c.out + output] +=
            signed_of(layer.binary_weights, latent) * signed_of(layer.binary_input, n[b * c.in + input]);
      });
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double z = activation_input(i);
      if (layer.slope != nullptr && std::fabs(z) < 1e-4 && conv[i] != 0.0) return false;
      y[i] = z > 0.0 ? z : z * parameter(c.slope, i / map % outs, 1.0);
      if (layer.skips) y[i] += as_double(c.other_skip ? c.skip[i] : c.x[i]);
    }
    return true;
  }

  double activation_input(std::size_t i) const {
    const std::size_t o = i / map % outs;
    return conv[i] * as_double(c.scale[o]) * factor[i / c.out * outs + o] + parameter(c.bias, o, 0.0);
  }
};

struct Gradients {
  Doubles x, gamma, beta, theta, scale, bias, gate, gate_bias, squeeze, excite, slope;
};

Gradients backward(const Reference& r, const std::vector<std::int64_t>& chosen) {
  const Case& c = r.c;
  const UnitLayer& layer = r.layer;
  const std::size_t hidden = size(layer.hidden);
  Gradients d;
  d.x.resize(c.x.size());
  d.gamma.resize(c.gamma.size());
  d.beta.resize(c.beta.size());
  d.theta.resize(c.theta.size());
  d.scale.resize(c.scale.size());
  d.bias.resize(c.bias.size());
  d.gate.resize(c.gate.size());
  d.gate_bias.resize(c.gate_bias.size());
  d.squeeze.resize(c.squeeze.size());
  d.excite.resize(c.excite.size());
  d.slope.resize(c.slope.size());
  Doubles dn(c.x.size()), dconv(r.conv.size()), dfactor(r.factor.size());
  for (std::size_t i = 0; i < r.conv.size(); ++i) {
    const std::size_t o = i / r.map % r.outs, b = i / c.out;
    const double z = r.activation_input(i), dy = as_double(c.dy[i]), factor = r.factor[b * r.outs + o];
    const double dz = z > 0.0 ? dy : dy * r.parameter(c.slope, o, 1.0);
    if (!c.slope.empty() && z <= 0.0) d.slope[o] += dy * z;
    if (!c.bias.empty()) d.bias[o] += dz;
    d.scale[o] += dz * r.conv[i] * factor;
    dfactor[b * r.outs + o] += dz * r.conv[i] * as_double(c.scale[o]);
    dconv[i] = dz * as_double(c.scale[o]) * factor;
  }
  for (std::size_t b = 0; b < r.batch; ++b) {
    const std::size_t first = static_cast<std::size_t>(chosen[b]) * c.weights;
    Doubles own(c.weights), dots(r.experts), dmeans(r.channels);
    for_products(r.s, [&](std::size_t output, std::size_t weight, std::size_t input) {
      const double latent = as_double(c.theta[first + weight]), at = r.n[b * c.in + input];
      const double mask = estimated(layer.binary_weights ? Estimator::clip : Estimator::one, latent);
      own[weight] += dconv[b * c.out + output] * signed_of(layer.binary_input, at) * mask;
      dn[b * c.in + input] += dconv[b * c.out + output] * signed_of(layer.binary_weights, latent) *
                              estimated(layer.input_estimator, at);
    });
    for (std::size_t w = 0; w < c.weights; ++w) {
      d.theta[first + w] += own[w];
      for (std::size_t i = 0; i < r.experts; ++i) dots[i] += own[w] * as_double(c.theta[i * c.weights + w]);
    }
    double total = 0.0, weighted = 0.0;
    const double tau = as_double(layer.temperature);
    for (std::size_t i = 0; i < r.experts; ++i) {
      total += std::exp(r.logits[b * r.experts + i] / tau);
      weighted += std::exp(r.logits[b * r.experts + i] / tau) * dots[i];
    }
    for (std::size_t i = 0; i < r.experts && layer.gate != nullptr; ++i) {
      const double z = r.logits[b * r.experts + i] / tau, one = 1.0 / (1.0 + std::exp(-z));
      const double dz = (layer.sigmoid ? dots[i] * one * (1.0 - one) : std::exp(z) / total * (dots[i] - weighted / total)) / tau;
      d.gate_bias[i] += dz;
      for (std::size_t ch = 0; ch < r.channels; ++ch) {
        d.gate[i * r.channels + ch] += dz * r.means[b * r.channels + ch];
        dmeans[ch] += dz * as_double(c.gate[i * r.channels + ch]);
      }
    }
    for (std::size_t j = 0; j < hidden; ++j) {
      double dhidden = 0.0;
      for (std::size_t o = 0; o < r.outs; ++o) {
        const double f = r.factor[b * r.outs + o], du = dfactor[b * r.outs + o] * f * (1.0 - f);
        d.excite[o * hidden + j] += du * r.hidden[b * hidden + j];
        dhidden += du * as_double(c.excite[o * hidden + j]);
      }
      if (r.hidden[b * hidden + j] <= 0.0) continue;
      for (std::size_t ch = 0; ch < r.channels; ++ch) {
        d.squeeze[j * r.channels + ch] += dhidden * r.means[b * r.channels + ch];
        dmeans[ch] += dhidden * as_double(c.squeeze[j * r.channels + ch]);
      }
    }
    for (std::size_t i = 0; i < c.in; ++i) dn[b * c.in + i] += dmeans[i / r.plane] / static_cast<double>(r.plane);
  }
  const bool norm = layer.gamma != nullptr;
  Doubles sum(r.channels), sum_hat(r.channels);
  for (std::size_t i = 0; i < dn.size(); ++i) {
    sum[i / r.plane % r.channels] += dn[i];
    sum_hat[i / r.plane % r.channels] += dn[i] * r.hat[i];
  }
  if (norm) d.beta = sum, d.gamma = sum_hat;
  const double count = static_cast<double>(r.batch * r.plane);
  for (std::size_t i = 0; i < dn.size(); ++i) {
    const std::size_t ch = i / r.plane % r.channels;
    const double centred = norm && layer.training ? dn[i] - sum[ch] / count - r.hat[i] * sum_hat[ch] / count : dn[i];
    d.x[i] = centred * r.parameter(c.gamma, ch, 1.0) * r.rstd[ch];
    if (layer.skips && !c.other_skip) d.x[i] += as_double(c.dy[i]);
  }
  return d;
}

// A gradient is wanted where the parameter is there.
float* wanted(Floats& gradient, const Floats& parameter) {
  gradient.assign(parameter.size(), -7.0f);
  return parameter.empty() ? nullptr : gradient.data();
}

bool check(DenseLevel level, int threads) {
  const ConvShape s = random_shape();
  if (!s.valid()) return false;
  Case c(s);
  const UnitLayer& layer = c.layer;
  const std::size_t batch = size(layer.batch);
  std::vector<std::int64_t> chosen(batch, -7);
  Floats y(batch * c.out, -7.0f), kept(unit_kept_floats(layer)), conv(unit_conv_count(layer));
  std::vector<std::int16_t> counts(unit_conv_count(layer));
  UnitForward forward;
  forward.x = c.x.data();
  forward.skip = c.other_skip ? c.skip.data() : nullptr;
  forward.y = y.data();
  forward.conv = layer.counts() ? static_cast<void*>(counts.data()) : conv.data();
  forward.kept = kept.data();
  forward.chosen = chosen.data();
  bool finite = false;
  afresh([&] { finite = unit_forward(layer, forward, threads, level); });
  Floats dx, dgamma, dbeta, dtheta, dscale, dbias, dgate, dgate_bias, dsqueeze, dexcite, dslope;
  UnitBackward back;
  back.x = c.x.data();
  back.dy = c.dy.data();
  back.skip_is_x = !c.other_skip;
  back.conv = forward.conv;
  back.kept = kept.data();
  back.chosen = chosen.data();
  back.dx = wanted(dx, c.x);
  back.dgamma = wanted(dgamma, c.gamma);
  back.dbeta = wanted(dbeta, c.beta);
  back.dtheta = wanted(dtheta, c.theta);
  back.dscale = wanted(dscale, c.scale);
  back.dbias = wanted(dbias, c.bias);
  back.dgate = wanted(dgate, c.gate);
  back.dgate_bias = wanted(dgate_bias, c.gate_bias);
  back.dsqueeze = wanted(dsqueeze, c.squeeze);
  back.dexcite = wanted(dexcite, c.excite);
  back.dslope = wanted(dslope, c.slope);
  afresh([&] { unit_backward(layer, back, threads, level); });

  Reference reference(c);
  reference.normalise();
  if (!finite || !reference.choose(chosen) || !reference.forward(chosen)) return false;
  compare("output", level, y, reference.y);
  const Gradients d = backward(reference, chosen);
  compare("input gradient", level, dx, d.x);
  compare("norm's weights", level, dgamma, d.gamma);
  compare("norm's biases", level, dbeta, d.beta);
  compare("weights", level, dtheta, d.theta);
  compare("scale", level, dscale, d.scale);
  compare("bias", level, dbias, d.bias);
  compare("gate", level, dgate, d.gate);
  compare("gate's bias", level, dgate_bias, d.gate_bias);
  compare("squeeze", level, dsqueeze, d.squeeze);
  compare("excite", level, dexcite, d.excite);
  compare("slope", level, dslope, d.slope);
  return true;
}

// NaN anywhere in a gated input is told, not chosen by.
void check_nan(DenseLevel level) {
  ConvShape s;
  s.in_channels = s.out_channels = 20;
  s.in_h = s.in_w = 5;
  for (int attempt = 0; attempt < 20; ++attempt) {
    Case c(s);
    if (c.layer.gate == nullptr) continue;
    c.x[generator() % c.x.size()] = std::nanf("");
    Floats y(c.dy.size()), kept(unit_kept_floats(c.layer));
    std::vector<std::int64_t> chosen(size(c.layer.batch));
    UnitForward io;
    io.x = c.x.data();
    io.y = y.data();
    io.kept = kept.data();
    io.chosen = chosen.data();
    if (!unit_forward(c.layer, io, 2, level)) continue;
    std::printf("%s: NaN went unnoticed\n", dense_level_name(level));
    ++failures;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 200;
  for (const DenseLevel level : {DenseLevel::scalar, DenseLevel::avx2, DenseLevel::avx512}) {
    if (!runs_here(level)) {
      std::printf("%s: not run, this CPU lacks it\n", title(level).c_str());
      continue;
    }
    int compared = 0;
    for (int i = 0; i < cases; ++i) compared += check(level, 1 + i % 3) ? 1 : 0;
    check_nan(level);
    std::printf("%s: ran\n", title(level).c_str());
    if (compared < cases / 4) {
      std::printf("only %d of %d cases could be compared\n", compared, cases);
      ++failures;
    }
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
