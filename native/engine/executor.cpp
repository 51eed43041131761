#include "engine/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "engine/error.h"
#include "engine/linear_rows.h"
#include "engine/pixels.h"

namespace ebnet {

namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

float real_of(std::uint8_t byte, const ByteCode& code) { return static_cast<float>(byte - code.zero) * code.step; }

}  // namespace

void Executor::run(const Images& images, float* logits, const Record& record) {
  using Clock = std::chrono::steady_clock;
  if (record.values != nullptr) record.values->assign(plan_.ops.size(), {});
  for (int first = 0; first < images.batch; first += slots_) {
    const int count = std::min(slots_, images.batch - first);
    if (plan_.values[0].bytes) {
      load_bytes(images, first, count);
    } else {
      load_images(images, first, count);
    }
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const auto start = record.seconds != nullptr ? Clock::now() : Clock::time_point{};
      run_op(i, count);
      for (const int reader : plan_.ops[i].binarizes_for) binarize_input(z(reader), count);
      if (record.seconds != nullptr) record.seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
      watch_.check();
      save(i, first, count, images.batch, record);
    }
    save_logits(first, count, logits);
  }
}

void Executor::save_logits(int first, int count, float* logits) {
  const auto classes = z(model_.program.classes());
  for (int slot = 0; slot < count; ++slot) {
    const float* from = value(slot, plan_.ops.size());
    if (!std::all_of(from, from + classes, [](float logit) { return std::isfinite(logit); })) {
      fail(Error::LogitsNotFinite, "image " + std::to_string(first + slot) +
                                       ": the network's numbers overflow, its logits are NaN or infinity");
    }
    std::memcpy(logits + z(first + slot) * classes, from, classes * sizeof(float));
  }
}

void Executor::save(std::size_t index, int first, int count, int batch, const Record& record) {
  if (record.experts != nullptr && model_.program.ops[index].kind == OpKind::Binary) {
    std::size_t layer = 0;
    for (std::size_t i = 0; i < index; ++i) layer += model_.program.ops[i].kind == OpKind::Binary ? 1 : 0;
    for (int slot = 0; slot < count; ++slot) record.experts[layer * z(batch) + z(first + slot)] = workspace_.chosen[z(slot)];
  }
  if (record.values == nullptr) return;
  const ValuePlan& planned = plan_.values[index + 1];
  std::vector<float>& out = (*record.values)[index];
  for (int slot = 0; slot < count; ++slot) {
    const void* from = value(slot, index + 1);
    for (std::size_t pixel = 0; pixel < planned.pixels(); ++pixel) {
      for (std::size_t c = 0; c < z(planned.channels); ++c) {
        const std::size_t at = pixel * planned.stride + c;
        out.push_back(planned.bytes ? real_of(static_cast<const std::uint8_t*>(from)[at], planned.code)
                                    : load_value(from, at, planned.type));
      }
    }
  }
}

void Executor::fail_not_finite(int first, int count) {
  fail(Error::InputNotFinite,
       "images " + std::to_string(first) + " to " + std::to_string(first + count - 1) + " hold NaN or infinity");
}

void Executor::load_images(const Images& images, int first, int count) {
  const int channels = model_.program.in_channels;
  const int width = images.width;
  const std::size_t pixels = plan_.values[0].pixels();
  const std::size_t stride = plan_.values[0].stride;
  std::atomic<bool> finite{true};
  const auto work = static_cast<double>(pixels * z(channels));
  over_rows(count, images.height, work, nullptr, [&](int slot, int begin, int end, int) {
    float* to = value(slot, 0);
    const std::size_t image = z(first + slot) * pixels * z(channels);
    if (images.bytes != nullptr) {
      const std::uint8_t* from = images.bytes + image;
      for (int c = 0; c < channels; ++c) {
        const float scale = 1.0f / (255.0f * model_.preprocessing.std[z(c)]);
        const float shift = -model_.preprocessing.mean[z(c)] / model_.preprocessing.std[z(c)];
        for (std::size_t p = z(begin) * z(width); p < z(end) * z(width); ++p) {
          to[p * stride + z(c)] = static_cast<float>(from[p * z(channels) + z(c)]) * scale + shift;
        }
      }
      return;
    }
    const float* from = images.reals + image;
    for (std::size_t pixel = z(begin) * z(width); pixel < z(end) * z(width); pixel += z(width)) {
      if (!interleave_planes(from + pixel, pixels, channels, width, to + pixel * stride, stride)) {
        finite.store(false, std::memory_order_relaxed);
      }
    }
  });
  if (!finite.load()) fail_not_finite(first, count);
}

void Executor::run_op(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  if (op.int8) return int8_op(index, count);
  switch (op.kind) {
    case OpKind::Conv:
      return conv(index, count);
    case OpKind::MaxPool:
    case OpKind::AvgPool:
      return pool(index, count);
    case OpKind::Concat:
      return concat(index, count);
    case OpKind::Sum:
      return sum(index, count);
    case OpKind::Binary:
      return binary(index, count);
    case OpKind::GlobalPool:
      return global_pool(index, count);
    case OpKind::Linear:
      return linear_op(index, count);
  }
}

void Executor::conv(std::size_t index, int count) {
  const auto input = z(model_.program.ops[index].inputs[0]);
  const ValuePlan& from = plan_.values[input];
  const ValuePlan& to = plan_.values[index + 1];
  over_rows(count, to.height, plan_.ops[index].work, nullptr, [&](int slot, int begin, int end, int thread) {
    dense_conv(model_.weights[index].conv, plan_.ops[index].conv, value(slot, input), from.stride,
               value(slot, index + 1), to.stride, begin, end, model_.dense_level, workspace_.scratch(thread));
  });
}

void Executor::pool(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const auto input = z(op.inputs[0]);
  const ValuePlan& from = plan_.values[input];
  const ValuePlan& to = plan_.values[index + 1];
  const auto run = op.kind == OpKind::MaxPool ? &max_pool : &average_pool;
  if (to.bytes) {
    over_rows(count, to.height, plan_.ops[index].work, nullptr, [&](int slot, int begin, int end, int) {
      max_pool_bytes(plan_.ops[index].pool, at<std::uint8_t>(slot, from.offset), from.stride,
                     at<std::uint8_t>(slot, to.offset), to.stride, begin, end, model_.int8_level);
    });
    return;
  }
  over_rows(count, to.height, plan_.ops[index].work, nullptr, [&](int slot, int begin, int end, int) {
    run(plan_.ops[index].pool, value(slot, input), from.stride, value(slot, index + 1), to.stride, begin, end,
        model_.dense_level);
  });
}

void Executor::concat(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const ValuePlan& to = plan_.values[index + 1];
  std::size_t channel = 0;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const auto input = z(op.inputs[k]);
    const ValuePlan& from = plan_.values[input];
    const std::size_t channels = z(from.channels);
    if (plan_.ops[index].copies[k]) {
      over_rows(count, to.height, plan_.ops[index].work, nullptr, [&](int slot, int begin, int end, int) {
        for (std::size_t p = z(begin) * z(to.width); p < z(end) * z(to.width); ++p) {
          std::memcpy(at<std::uint8_t>(slot, to.offset) + (p * to.stride + channel) * to.value_width(),
                      at<std::uint8_t>(slot, from.offset) + p * from.stride * to.value_width(), channels * to.value_width());
        }
      });
    }
    channel += channels;
  }
}

// In the order of the inputs.
void Executor::sum(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const ValuePlan& to = plan_.values[index + 1];
  const std::size_t channels = z(to.channels);
  over_rows(count, to.height, plan_.ops[index].work, nullptr, [&](int slot, int begin, int end, int) {
    for (std::size_t p = z(begin) * z(to.width); p < z(end) * z(to.width); ++p) {
      float* result = value(slot, index + 1) + p * to.stride;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const auto input = z(op.inputs[k]);
        const float* from = value(slot, input) + p * plan_.values[input].stride;
        const float factor = op.factors[k];
        if (k == 0) {
          for (std::size_t c = 0; c < channels; ++c) result[c] = factor * from[c];
        } else {
          for (std::size_t c = 0; c < channels; ++c) result[c] += factor * from[c];
        }
      }
    }
  });
}

void Executor::global_pool(std::size_t index, int count) {
  const auto input = z(model_.program.ops[index].inputs[0]);
  const ValuePlan& from = plan_.values[input];
  pool_.loop(count, [&](int slot, int thread) {
    if (watch_.stopped(thread)) return;
    global_average_pool(value(slot, input), from.stride, static_cast<int>(from.pixels()), from.channels,
                        value(slot, index + 1), model_.dense_level);
  });
}

void Executor::linear_op(std::size_t index, int count) {
  // A block of outputs serves all images while its weights are in cache.
  constexpr int kBlock = 64;
  const Op& op = model_.program.ops[index];
  const LinearWeights& weights = model_.weights[index].linear;
  const auto input = z(op.inputs[0]);
  pool_.loop((op.out_channels + kBlock - 1) / kBlock, [&](int block, int thread) {
    if (watch_.stopped(thread)) return;
    const int begin = block * kBlock;
    const int outputs = std::min(kBlock, op.out_channels - begin);
    for (int slot = 0; slot < count; ++slot) {
      linear_rows(weights.weight, begin, outputs, weights.bias.data() + begin,
                  weights.slope.empty() ? nullptr : weights.slope.data() + begin, op.activation, value(slot, input),
                  op.in_channels, value(slot, index + 1) + begin, model_.dense_level);
    }
  });
}

}  // namespace ebnet
