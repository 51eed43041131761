// The unit's phases, their threads and the sums over the batch; the arithmetic is in the headers beside it.
#include "train/unit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "train/threads.h"
#include "train/unit_levels.h"

namespace ebnet {
namespace {

const UnitKernels& kernels(DenseLevel level) {
  return PerLevel<UnitKernels>{&kUnitPortable, EBNET_ON_X86_64(kUnitAvx2), EBNET_ON_X86_64(kUnitAvx512)}.at(level);
}

// The level's own, unless the CPU has an instruction for it that not all of the level have.
SignSums sign_sums(DenseLevel level) {
#ifdef EBNET_X86_64
  static const bool counts = __builtin_cpu_supports("avx512vpopcntdq") != 0;
  if (level == DenseLevel::avx512 && counts) return sign_sums_vpopcnt;
#endif
  return kernels(level).sign_sums;
}

std::size_t size(int value) { return static_cast<std::size_t>(value); }

constexpr std::size_t kConvBehind = 16;  // numbers behind the last of c: a vector

// Consecutive arrays; without a base it only counts.
template <typename Float>
class Arrays {
 public:
  explicit Arrays(Float* base) : base_(base) {}
  Float* take(std::size_t floats) {
    Float* taken = base_ == nullptr ? nullptr : base_ + count_;
    count_ += floats;
    return taken;
  }
  std::size_t count() const { return count_; }

 private:
  Float* base_;
  std::size_t count_ = 0;
};

UnitKept kept_of(const UnitLayer& layer, Arrays<float>& arrays) {
  const std::size_t batch = size(layer.batch), in = size(layer.shape.in_channels);
  UnitKept kept;
  kept.mean = arrays.take(layer.gamma == nullptr ? 0 : in);
  kept.rstd = arrays.take(layer.gamma == nullptr ? 0 : in);
  kept.hat_mean = arrays.take(layer.means() ? batch * in : 0);
  kept.logits = arrays.take(layer.gate == nullptr ? 0 : batch * size(layer.experts));
  kept.hidden = arrays.take(layer.squeeze == nullptr ? 0 : batch * size(layer.hidden));
  kept.factor = arrays.take(layer.squeeze == nullptr ? 0 : batch * size(layer.shape.out_channels));
  return kept;
}

UnitKept kept_of(const UnitLayer& layer, const float* memory) {
  Arrays<float> arrays(const_cast<float*>(memory));
  return kept_of(layer, arrays);
}

// body(first, last) for parts of [0, count), one for each thread.
template <typename Body>
void in_parts(int count, int threads, Body body) {
  const int parts = std::max(1, std::min(threads, count));
  on_threads(parts, [&](int part) {
    const std::int64_t all = count;
    body(part, static_cast<int>(all * part / parts), static_cast<int>(all * (part + 1) / parts));
  });
}

// The batch by expert, as the kernels take it.
class Order {
 public:
  Order(const std::int64_t* chosen, int batch, int experts) : order_(size(batch)), begin_(size(experts) + 2) {
    for (int b = 0; b < batch; ++b) ++begin_[static_cast<std::size_t>(chosen[b]) + 2];
    for (std::size_t e = 2; e < begin_.size(); ++e) begin_[e] += begin_[e - 1];
    for (int b = 0; b < batch; ++b) order_[size(begin_[static_cast<std::size_t>(chosen[b]) + 1]++)] = b;
  }
  SamplesByExpert samples() const { return {order_.data(), begin_.data()}; }

  // Where the part begins: near an equal share, and after a multiple of `together` samples of an expert.
  int cut(int part, int parts, int together) const {
    const int near = static_cast<int>(static_cast<std::int64_t>(order_.size()) * part / parts);
    std::size_t e = 0;
    while (begin_[e + 1] <= near && e + 2 < begin_.size()) ++e;
    const int whole = (near - begin_[e] + together / 2) / together * together;
    return std::min(begin_[e] + whole, begin_[e + 1]);
  }

 private:
  std::vector<int> order_, begin_;
};

// Mean and variance of the batch from those of its planes, which are equally large; the running ones move towards them,
// with the variance of a sample rather than of the batch, as torch.nn.BatchNorm2d does it.
void batch_statistics(const UnitLayer& layer, const float* means, const float* squares, const UnitKept& kept) {
  const std::size_t in = size(layer.shape.in_channels), batch = size(layer.batch);
  std::vector<double> mean(in), spread(in);
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t c = 0; c < in; ++c) mean[c] += static_cast<double>(means[b * in + c]);
  }
  for (double& m : mean) m /= static_cast<double>(batch);
  const double plane = static_cast<double>(layer.in_plane()), count = plane * static_cast<double>(batch);
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t c = 0; c < in; ++c) {
      const double off = static_cast<double>(means[b * in + c]) - mean[c];
      spread[c] += static_cast<double>(squares[b * in + c]) + plane * off * off;
    }
  }
  for (std::size_t c = 0; c < in; ++c) {
    kept.mean[c] = static_cast<float>(mean[c]);
    kept.rstd[c] = static_cast<float>(1.0 / std::sqrt(spread[c] / count + layer.eps));
    if (layer.running_mean == nullptr) continue;
    const auto move = [&](float& value, double to) {
      value = static_cast<float>((1.0 - layer.momentum) * static_cast<double>(value) + layer.momentum * to);
    };
    move(layer.running_mean[c], mean[c]);
    move(layer.running_var[c], spread[c] / (count - 1.0));
  }
}

// Fill mean, rstd and the means of h: the only pass over the whole of x before the samples go their own ways.
void statistics(const UnitLayer& layer, const UnitForward& io, const UnitKept& kept, int threads,
                const UnitKernels& kernel) {
  const std::size_t in = size(layer.shape.in_channels), planes = size(layer.batch) * in;
  const bool norm = layer.gamma != nullptr, of_batch = norm && layer.training;
  float *means = nullptr, *squares = nullptr;
  if (of_batch || layer.means()) {
    means = shared_scratch(2 * planes);
    squares = of_batch ? means + planes : nullptr;
    in_parts(layer.batch, threads, [&](int, int first, int last) {
      const std::size_t begin = size(first) * in, count = size(last - first) * in;
      kernel.moments(io.x + begin * layer.in_plane(), count, layer.in_plane(), means + begin,
                     of_batch ? squares + begin : nullptr);
    });
  }
  if (of_batch) {
    batch_statistics(layer, means, squares, kept);
  } else if (norm) {
    for (std::size_t c = 0; c < in; ++c) {
      kept.mean[c] = layer.running_mean[c];
      kept.rstd[c] = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layer.running_var[c]) + layer.eps));
    }
  }
  for (std::size_t b = 0; layer.means() && b < size(layer.batch); ++b) {
    for (std::size_t c = 0; c < in; ++c) {
      const float mean = means[b * in + c];
      kept.hat_mean[b * in + c] = norm ? (mean - kept.mean[c]) * kept.rstd[c] : mean;
    }
  }
}

// to[c] = sum over the batch of values[b][c], times factors[b][c] where given.
void sum_batch(const float* values, const float* factors, int batch, std::size_t channels, float* to) {
  std::vector<double> sums(channels);
  for (std::size_t b = 0; b < size(batch); ++b, values += channels) {
    if (factors == nullptr) {
      for (std::size_t c = 0; c < channels; ++c) sums[c] += static_cast<double>(values[c]);
    } else {
      const float* of_sample = factors + b * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        sums[c] += static_cast<double>(of_sample[c]) * static_cast<double>(values[c]);
      }
    }
  }
  for (std::size_t c = 0; c < channels; ++c) to[c] = static_cast<float>(sums[c]);
}

UnitSums sums_of(const UnitLayer& layer, Arrays<float>& arrays) {
  const std::size_t batch = size(layer.batch), in = size(layer.shape.in_channels), out = size(layer.shape.out_channels);
  UnitSums sums;
  sums.slope = arrays.take(batch * out);
  sums.scale = arrays.take(batch * out);
  sums.bias = arrays.take(batch * out);
  sums.raw = arrays.take(batch * in);
  sums.raw_hat = arrays.take(batch * in);
  sums.dots = arrays.take(batch * size(layer.experts));
  sums.dlogits = arrays.take(batch * size(layer.experts));
  sums.dexcited = arrays.take(batch * out);
  sums.dhidden = arrays.take(batch * size(layer.hidden));
  sums.dmean = arrays.take(batch * in);
  return sums;
}

// The batch norm's gradient. With n = batch * positions, D1 = dbeta / n and D2 = dgamma / n (zero for fixed
// statistics),
//   dx = gamma rstd (dn - D1 - h D2),  dn = raw + dmean / positions
// is `slope` dn's raw part + `offset` per sample + `tilt` (x - mean).
void input_terms(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const UnitSums& sums,
                 float* slope, float* tilt, float* offset) {
  const std::size_t batch = size(layer.batch), in = size(layer.shape.in_channels);
  const bool norm = layer.gamma != nullptr, means = layer.means();
  std::vector<double> dbeta(in), dgamma(in);
  for (std::size_t i = 0, c = 0; norm && i < batch * in; ++i, c = c + 1 == in ? 0 : c + 1) {
    const double dmean = means ? static_cast<double>(sums.dmean[i]) : 0.0;
    dbeta[c] += static_cast<double>(sums.raw[i]) + dmean;
    dgamma[c] += static_cast<double>(sums.raw_hat[i]) +
                 (means ? dmean * static_cast<double>(kept.hat_mean[i]) : 0.0);
  }
  const double plane = static_cast<double>(layer.in_plane()), count = plane * static_cast<double>(batch);
  const bool of_batch = norm && layer.training;
  for (std::size_t c = 0; c < in; ++c) {
    const double k = norm ? static_cast<double>(layer.gamma[c]) * static_cast<double>(kept.rstd[c]) : 1.0;
    slope[c] = static_cast<float>(k);
    tilt[c] = of_batch ? static_cast<float>(-k * dgamma[c] / count * static_cast<double>(kept.rstd[c])) : 0.0f;
    const double off = of_batch ? dbeta[c] / count : 0.0;
    for (std::size_t b = 0; b < batch; ++b) {
      const double dmean = means ? static_cast<double>(sums.dmean[b * in + c]) / plane : 0.0;
      offset[b * in + c] = static_cast<float>(k * (dmean - off));
    }
    if (norm) io.dbeta[c] = static_cast<float>(dbeta[c]);
    if (norm) io.dgamma[c] = static_cast<float>(dgamma[c]);
  }
}

// Gradients of the gate and of the scaling, from the dots and the sums of every sample.
void means_gradients(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const UnitSums& sums,
                     float* means, int threads, const UnitKernels& kernel) {
  const int in = layer.shape.in_channels, out = layer.shape.out_channels;
  in_parts(layer.batch, threads,
           [&](int, int first, int last) { kernel.means_gradient(layer, kept, sums, first, last); });
  for (std::size_t i = 0, c = 0; i < size(layer.batch) * size(in); ++i, c = c + 1 == size(in) ? 0 : c + 1) {
    means[i] = layer.gamma == nullptr ? kept.hat_mean[i] : kept.hat_mean[i] * layer.gamma[c] + layer.beta[c];
  }
  const auto outer = [&](const float* a, const float* b, int rows, int columns, float* to) {
    in_parts(rows, threads,
             [&](int, int first, int last) { kernel.outer(a, b, layer.batch, rows, columns, first, last, to); });
  };
  if (layer.gate != nullptr) {
    outer(sums.dlogits, means, layer.experts, in, io.dgate);
    sum_batch(sums.dlogits, nullptr, layer.batch, size(layer.experts), io.dgate_bias);
  }
  if (layer.squeeze != nullptr) {
    outer(sums.dhidden, means, layer.hidden, in, io.dsqueeze);
    outer(sums.dexcited, kept.hidden, out, layer.hidden, io.dexcite);
  }
}

}  // namespace

std::size_t unit_kept_floats(const UnitLayer& layer) {
  Arrays<float> arrays(nullptr);
  kept_of(layer, arrays);
  return arrays.count();
}

std::size_t unit_conv_count(const UnitLayer& layer) {
  return size(layer.batch) * size(layer.shape.out_channels) * layer.out_plane() + kConvBehind;
}

bool unit_forward(const UnitLayer& layer, const UnitForward& io, int threads, DenseLevel level) {
  const UnitKernels& kernel = kernels(level);
  const UnitKept kept = kept_of(layer, io.kept);
  statistics(layer, io, kept, threads, kernel);
  std::fill_n(io.chosen, layer.batch, 0);
  if (layer.means()) {
    std::atomic<bool> finite{true};
    in_parts(layer.batch, threads, [&](int, int first, int last) {
      float* means = scratch(size(layer.shape.in_channels));
      if (!kernel.choose(layer, kept, first, last, io.chosen, means)) finite = false;
    });
    if (!finite) return false;
  }
  const Order order(io.chosen, layer.batch, layer.experts);
  const SignSums sums_of_signs = sign_sums(level);
  in_parts(layer.batch, threads, [&](int, int first, int last) {
    kernel.forward(layer, io, kept, order.samples(), first, last, sums_of_signs, scratch(kernel.forward_floats(layer)));
  });
  return true;
}

void unit_backward(const UnitLayer& layer, const UnitBackward& io, int threads, DenseLevel level) {
  const UnitKernels& kernel = kernels(level);
  const UnitKept kept = kept_of(layer, io.kept);
  const Order order(io.chosen, layer.batch, layer.experts);
  const SamplesByExpert samples = order.samples();
  const std::size_t in = size(layer.shape.in_channels), batch = size(layer.batch);
  const std::size_t weights = size(layer.shape.out_channels) * size(layer.shape.in_per_group() * layer.shape.taps());
  const std::size_t packed = layer.gate == nullptr ? 0 : size(layer.experts) * kernel.direction_floats(layer);
  const int parts = std::max(1, std::min(threads, layer.batch));

  const auto carve = [&](float* base, UnitSums& sums, float*& directions, float*& partial, float*& terms) {
    Arrays<float> arrays(base);
    directions = arrays.take((packed + 15) / 16 * 16);
    partial = arrays.take(weights * size(parts - 1));
    sums = sums_of(layer, arrays);
    terms = arrays.take(2 * in + 2 * batch * in);
    return arrays.count();
  };
  UnitSums sums;
  float *directions = nullptr, *partial = nullptr, *terms = nullptr;
  const std::size_t floats = carve(nullptr, sums, directions, partial, terms);
  carve(shared_scratch(floats), sums, directions, partial, terms);

  if (packed > 0) {
    const int groups = layer.shape.groups, count = layer.experts * groups;
    in_parts(count, threads, [&](int, int first, int last) {
      float* memory = scratch(kernel.direction_scratch(layer));
      for (int i = first; i < last; ++i) kernel.pack_directions(layer, i / groups, i % groups, memory, directions);
    });
  }
  for (int e = 0; e < layer.experts; ++e) {
    if (samples.begin[e] == samples.begin[e + 1]) std::fill_n(io.dtheta + size(e) * weights, weights, 0.0f);
  }
  // A part that begins amid an expert's samples sums its weight gradient apart from the part that began with them.
  std::vector<int> begun(size(parts), -1);
  const int together = kernel.scored_together(layer);
  on_threads(parts, [&](int part) {
    const int first = order.cut(part, parts, together), last = order.cut(part + 1, parts, together);
    if (first == last) return;
    float* shared = nullptr;
    for (int e = 0; part > 0 && e < layer.experts; ++e) {
      if (samples.begin[e] >= first || samples.begin[e + 1] <= first) continue;
      begun[size(part)] = e;
      shared = partial + size(part - 1) * weights;
    }
    kernel.backward(layer, io, kept, sums, samples, first, last, directions, shared,
                    scratch(kernel.backward_floats(layer)));
  });
  for (int part = 1; part < parts; ++part) {
    if (begun[size(part)] < 0) continue;
    float* to = io.dtheta + size(begun[size(part)]) * weights;
    for (std::size_t i = 0; i < weights; ++i) to[i] += partial[size(part - 1) * weights + i];
  }

  const std::size_t out = size(layer.shape.out_channels);
  float *slope = terms, *tilt = terms + in, *offset = tilt + in, *means = offset + batch * in;
  sum_batch(sums.scale, layer.squeeze == nullptr ? nullptr : kept.factor, layer.batch, out, io.dscale);
  if (layer.bias != nullptr) sum_batch(sums.bias, nullptr, layer.batch, out, io.dbias);
  if (layer.slope != nullptr) sum_batch(sums.slope, nullptr, layer.batch, out, io.dslope);
  if (layer.means()) means_gradients(layer, io, kept, sums, means, threads, kernel);
  input_terms(layer, io, kept, sums, slope, tilt, offset);
  in_parts(layer.batch, threads, [&](int, int first, int last) {
    kernel.finish(layer, io, kept, slope, tilt, offset, first, last);
  });
}

}  // namespace ebnet
