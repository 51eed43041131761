// The binary unit's formulas, forward and backward, in plain loops and double precision: what every level must equal.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/unit_case.h"

namespace ebnet::unit_test {

inline double as_double(float value) { return static_cast<double>(value); }

// Calls visit(output, weight, input) for the indices within one sample of every product of a convolution.
template <typename Visit>
inline void for_products(const ConvShape& s, Visit visit) {
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

inline double estimated(Estimator estimator, double n) {
  if (estimator == Estimator::one) return 1.0;
  if (std::fabs(n) > 1.0) return 0.0;
  return estimator == Estimator::clip ? 1.0 : 2.0 - 2.0 * std::fabs(n);
}

inline double signed_of(bool binary, double value) { return !binary ? value : value >= 0.0 ? 1.0 : -1.0; }

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

inline Gradients backward(const Reference& r, const std::vector<std::int64_t>& chosen) {
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

}  // namespace ebnet::unit_test
