// Gate and data-driven scaling of each sample, from the means of its channels (section 4.1; Martinez et al., 2020).
//
// Backward, with g the dots of the gate and s = softmax(z / tau) (or, for the ablation, sigmoid(z / tau)):
//
//   dz = s (g - <s, g>) / tau,  or  g s (1 - s) / tau              z = gate m + gate_bias
//   du = df f (1 - f),  dq = (excite^T du) where q > 0             f = sigmoid(u), u = excite relu(q), q = squeeze m
//   dm = gate^T dz + squeeze^T dq
//
// and the weights' gradients are outer products summed over the batch.
#pragma once
#include "train/unit_moments.h"

namespace ebnet {
namespace {

inline float dot(const float* a, const float* b, size_t count) {
  Vector sums = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sums += load(a + i) * load(b + i);
  if (i < count) sums += load_some(a + i, count - i) * load_some(b + i, count - i);
  return sum_of(sums);
}

inline void add_scaled(const float* from, float factor, size_t count, float* to) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + load(from + i) * splat(factor));
  for (; i < count; ++i) to[i] += from[i] * factor;
}

// The normalised means of one sample.
inline void means_of(const UnitLayer& layer, const UnitKept& kept, int b, float* m) {
  const size_t in = size(layer.shape.in_channels);
  const float* hat = kept.hat_mean + size(b) * in;
  for (size_t c = 0; c < in; ++c) m[c] = layer.gamma == nullptr ? hat[c] : hat[c] * layer.gamma[c] + layer.beta[c];
}

bool choose(const UnitLayer& layer, const UnitKept& kept, int first, int last, std::int64_t* chosen, float* m) {
  const size_t in = size(layer.shape.in_channels), out = size(layer.shape.out_channels), hidden = size(layer.hidden);
  for (int b = first; b < last; ++b) {
    means_of(layer, kept, b, m);
    if (layer.gate != nullptr) {
      float far = 0.0f;
      for (size_t c = 0; c < in; ++c) far += m[c] * 0.0f;
      if (far != 0.0f) return false;  // NaN or infinity times zero is NaN
      float* z = kept.logits + size(b) * size(layer.experts);
      int best = 0;
      for (int i = 0; i < layer.experts; ++i) {
        z[i] = dot(layer.gate + size(i) * in, m, in) + layer.gate_bias[i];
        if (z[i] > z[best]) best = i;
      }
      chosen[b] = best;
    }
    if (layer.squeeze == nullptr) continue;
    float* h = kept.hidden + size(b) * hidden;
    for (size_t j = 0; j < hidden; ++j) {
      const float q = dot(layer.squeeze + j * in, m, in);
      h[j] = q > 0.0f ? q : 0.0f;
    }
    float* f = kept.factor + size(b) * out;
    for (size_t o = 0; o < out; ++o) f[o] = 1.0f / (1.0f + __builtin_expf(-dot(layer.excite + o * hidden, h, hidden)));
  }
  return true;
}

// In double: where the gate is nearly sure, g - <s, g> of the chosen expert cancels.
inline void gate_gradient(const UnitLayer& layer, const float* z, const float* g, float* dz) {
  const double tau = static_cast<double>(layer.temperature);
  const auto at = [](const float* numbers, int i) { return static_cast<double>(numbers[i]); };
  double top = at(z, 0), total = 0.0, weighted = 0.0;
  for (int i = 1; i < layer.experts; ++i) top = at(z, i) > top ? at(z, i) : top;
  for (int i = 0; i < layer.experts; ++i) {
    const double grown = __builtin_exp((at(z, i) - top) / tau);
    total += grown;
    weighted += grown * at(g, i);
  }
  for (int i = 0; i < layer.experts; ++i) {
    const double one = 1.0 / (1.0 + __builtin_exp(-at(z, i) / tau));
    const double s = layer.sigmoid ? one * (1.0 - one) : __builtin_exp((at(z, i) - top) / tau) / total;
    dz[i] = static_cast<float>(s * (at(g, i) - (layer.sigmoid ? 0.0 : weighted / total)) / tau);
  }
}

void means_gradient(const UnitLayer& layer, const UnitKept& kept, const UnitSums& sums, int first, int last) {
  const size_t in = size(layer.shape.in_channels), out = size(layer.shape.out_channels), hidden = size(layer.hidden);
  const size_t experts = size(layer.experts);
  for (size_t b = size(first); b < size(last); ++b) {
    float* dm = sums.dmean + b * in;
    std::memset(dm, 0, in * sizeof(float));
    if (layer.gate != nullptr) {
      float* dz = sums.dlogits + b * experts;
      gate_gradient(layer, kept.logits + b * experts, sums.dots + b * experts, dz);
      for (size_t i = 0; i < experts; ++i) add_scaled(layer.gate + i * in, dz[i], in, dm);
    }
    if (layer.squeeze == nullptr) continue;
    const float *f = kept.factor + b * out, *h = kept.hidden + b * hidden, *of_scale = sums.scale + b * out;
    float *du = sums.dexcited + b * out, *dq = sums.dhidden + b * hidden;
    std::memset(dq, 0, hidden * sizeof(float));
    for (size_t o = 0; o < out; ++o) {
      du[o] = of_scale[o] * layer.scale[o] * f[o] * (1.0f - f[o]);
      add_scaled(layer.excite + o * hidden, du[o], hidden, dq);
    }
    for (size_t j = 0; j < hidden; ++j) {
      if (!(h[j] > 0.0f)) dq[j] = 0.0f;
      add_scaled(layer.squeeze + j * in, dq[j], in, dm);
    }
  }
}

void outer(const float* a, const float* b, int batch, int rows, int columns, int first, int last, float* to) {
  for (int row = first; row < last; ++row) {
    float* sum = to + size(row) * size(columns);
    std::memset(sum, 0, size(columns) * sizeof(float));
    for (int n = 0; n < batch; ++n) {
      add_scaled(b + size(n) * size(columns), a[size(n) * size(rows) + size(row)], size(columns), sum);
    }
  }
}

}  // namespace
}  // namespace ebnet
