#include "engine/executor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bits/binarize.h"
#include "engine/arena.h"
#include "engine/error.h"
#include "engine/pixels.h"

namespace ebnet {

namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

const float* pointer(const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); }

// Rows [begin, begin + rows) of a linear map.
void linear_rows(const Matrix& matrix, int begin, int rows, const float* bias, const float* slope,
                 Activation activation, const float* input, int in_features, float* output, DenseLevel level) {
  const std::size_t first = z(begin) * z(in_features);
  if (matrix.halves.empty()) {
    linear(matrix.reals.data() + first, bias, slope, activation, input, in_features, rows, output, level);
  } else {
    linear(matrix.halves.data() + first, bias, slope, activation, input, in_features, rows, output, level);
  }
}

}  // namespace

Executor::Executor(Model& model, Plan plan, int slots, ThreadPool& pool)
    : model_(model),
      plan_(std::move(plan)),
      slots_(slots),
      pool_(pool),
      arena_stride_(whole_lines(plan_.arena_bytes)),
      arenas_(arena_stride_ * z(slots) + kAlignment),
      scratch_(plan_.scratch_bytes * z(pool.threads()) + kAlignment),
      chosen_(z(slots)),
      order_(z(slots)) {}

template <class Body>
void Executor::over_rows(int count, int rows, const int* order, Body&& body) {
  // Whole images where there are enough of them to keep the threads busy, else pieces of an image. More pieces than
  // threads even out their speeds, but every piece costs a binary convolution an expansion of its weights.
  constexpr int kFewRows = 16;
  const int threads = pool_.threads();
  const int pieces = threads == 1 || count >= 2 * threads ? 1 : std::min(rows, rows < kFewRows ? threads : 2 * threads);
  pool_.loop(count * pieces, [&](int item, int thread) {
    const int slot = order == nullptr ? item / pieces : order[item / pieces];
    const int piece = item % pieces;
    const int begin = static_cast<int>(static_cast<std::int64_t>(rows) * piece / pieces);
    const int end = static_cast<int>(static_cast<std::int64_t>(rows) * (piece + 1) / pieces);
    body(slot, begin, end, thread);
  });
}

void Executor::run(const Images& images, float* logits, const Record& record) {
  using Clock = std::chrono::steady_clock;
  const auto classes = z(model_.program.classes());
  if (record.values != nullptr) record.values->assign(plan_.ops.size(), {});
  for (int first = 0; first < images.batch; first += slots_) {
    const int count = std::min(slots_, images.batch - first);
    load_images(images, first, count);
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const auto start = record.seconds != nullptr ? Clock::now() : Clock::time_point{};
      run_op(i, count);
      for (const int reader : plan_.ops[i].binarizes_for) binarize_input(z(reader), count);
      if (record.seconds != nullptr) record.seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
      save(i, first, count, images.batch, record);
    }
    for (int slot = 0; slot < count; ++slot) {
      std::memcpy(logits + z(first + slot) * classes, value(slot, plan_.ops.size()), classes * sizeof(float));
    }
  }
}

void Executor::save(std::size_t index, int first, int count, int batch, const Record& record) const {
  if (record.experts != nullptr && model_.program.ops[index].kind == OpKind::Binary) {
    std::size_t layer = 0;
    for (std::size_t i = 0; i < index; ++i) layer += model_.program.ops[i].kind == OpKind::Binary ? 1 : 0;
    for (int slot = 0; slot < count; ++slot) record.experts[layer * z(batch) + z(first + slot)] = chosen_[z(slot)];
  }
  if (record.values == nullptr) return;
  const ValuePlan& planned = plan_.values[index + 1];
  std::vector<float>& out = (*record.values)[index];
  for (int slot = 0; slot < count; ++slot) {
    const void* from = const_cast<Executor*>(this)->value(slot, index + 1);
    for (std::size_t pixel = 0; pixel < planned.pixels(); ++pixel) {
      for (std::size_t c = 0; c < z(planned.channels); ++c) {
        out.push_back(load_value(from, pixel * planned.stride + c, planned.type));
      }
    }
  }
}

void Executor::load_images(const Images& images, int first, int count) {
  const int channels = model_.program.in_channels;
  const int width = images.width;
  const std::size_t pixels = plan_.values[0].pixels();
  const std::size_t stride = plan_.values[0].stride;
  std::atomic<bool> finite{true};
  over_rows(count, images.height, nullptr, [&](int slot, int begin, int end, int) {
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
  if (!finite.load()) {
    fail(Error::InputNotFinite,
         "images " + std::to_string(first) + " to " + std::to_string(first + count - 1) + " hold NaN or infinity");
  }
}

void Executor::run_op(std::size_t index, int count) {
  switch (model_.program.ops[index].kind) {
    case OpKind::Conv:
      return conv(index, count);
    case OpKind::MaxPool:
    case OpKind::AvgPool:
      return pool(index, count);
    case OpKind::Concat:
      return concat(index, count);
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
  over_rows(count, to.height, nullptr, [&](int slot, int begin, int end, int thread) {
    dense_conv(model_.weights[index].conv, value(slot, input), from.stride, value(slot, index + 1), to.stride, begin,
               end, model_.dense_level, scratch_.data() + z(thread) * plan_.scratch_bytes);
  });
}

void Executor::pool(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const auto input = z(op.inputs[0]);
  const ValuePlan& from = plan_.values[input];
  const ValuePlan& to = plan_.values[index + 1];
  const auto run = op.kind == OpKind::MaxPool ? &max_pool : &average_pool;
  over_rows(count, to.height, nullptr, [&](int slot, int begin, int end, int) {
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
      over_rows(count, to.height, nullptr, [&](int slot, int begin, int end, int) {
        for (std::size_t p = z(begin) * z(to.width); p < z(end) * z(to.width); ++p) {
          std::memcpy(value(slot, index + 1) + p * to.stride + channel, value(slot, input) + p * from.stride,
                      channels * sizeof(float));
        }
      });
    }
    channel += channels;
  }
}

void Executor::global_pool(std::size_t index, int count) {
  const auto input = z(model_.program.ops[index].inputs[0]);
  const ValuePlan& from = plan_.values[input];
  pool_.loop(count, [&](int slot, int) {
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
  pool_.loop((op.out_channels + kBlock - 1) / kBlock, [&](int block, int) {
    const int begin = block * kBlock;
    const int outputs = std::min(kBlock, op.out_channels - begin);
    for (int slot = 0; slot < count; ++slot) {
      linear_rows(weights.weight, begin, outputs, weights.bias.data() + begin,
                  weights.slope.empty() ? nullptr : weights.slope.data() + begin, op.activation, value(slot, input),
                  op.in_channels, value(slot, index + 1) + begin, model_.dense_level);
    }
  });
}

void Executor::binarize_input(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const OpPlan& planned = plan_.ops[index];
  const BinaryWeights& weights = model_.weights[index].binary;
  const auto input = z(op.inputs[0]);
  const ValuePlan& from = plan_.values[input];
  const std::size_t words = z(from.width) * z(planned.conv.words_per_pixel());
  over_rows(count, from.height, nullptr, [&](int slot, int begin, int end, int) {
    for (int row = begin; row < end; ++row) {
      float* sums = nullptr;
      if (planned.needs_sums) {
        sums = at(slot, planned.sums) + z(row) * z(from.channels);
        std::memset(sums, 0, z(from.channels) * sizeof(float));
      }
      binarize(value(slot, input) + z(row) * z(from.width) * from.stride, from.stride, from.width, from.channels,
               planned.conv.in_per_group(), weights.norm_scale.data(), weights.norm_shift.data(),
               at<std::uint64_t>(slot, planned.bits) + z(row) * words, sums);
    }
  });
}

// The gate (argmax of a linear function of the mean input; ties go to the lowest index) and the data-driven scaling.
// The mean of the normalised input is the normalised mean, so the row sums of the raw stream are enough.
void Executor::choose_expert(std::size_t index, int slot) {
  const Op& op = model_.program.ops[index];
  const OpPlan& planned = plan_.ops[index];
  const BinaryWeights& weights = model_.weights[index].binary;
  const ValuePlan& from = plan_.values[z(op.inputs[0])];
  const float* sums = at(slot, planned.sums);
  float* mean = at(slot, planned.mean);
  const auto pixels = static_cast<double>(from.pixels());
  constexpr std::size_t kTogether = 16;  // channels whose sums do not wait for each other
  for (std::size_t c = 0; c < z(from.channels); c += kTogether) {
    const std::size_t some = std::min(kTogether, z(from.channels) - c);
    double totals[kTogether] = {};
    for (std::size_t row = 0; row < z(from.height); ++row) {
      const float* of_row = sums + row * z(from.channels) + c;
      if (some == kTogether) {
        for (std::size_t i = 0; i < kTogether; ++i) totals[i] += of_row[i];
      } else {
        for (std::size_t i = 0; i < some; ++i) totals[i] += of_row[i];
      }
    }
    for (std::size_t i = 0; i < some; ++i) {
      mean[c + i] = weights.norm_scale[c + i] * static_cast<float>(totals[i] / pixels) + weights.norm_shift[c + i];
    }
  }
  if (op.experts > 1) {
    float* logits = at(slot, planned.gate);
    linear_rows(weights.gate_weight, 0, op.experts, weights.gate_bias.data(), nullptr, Activation::none, mean,
                op.in_channels, logits, model_.dense_level);
    int best = 0;
    for (int expert = 1; expert < op.experts; ++expert) {
      if (logits[expert] > logits[best]) best = expert;
    }
    chosen_[z(slot)] = best;
  }
  float* scale = at(slot, planned.scale);
  if (op.squeeze > 0) {
    float* hidden = at(slot, planned.hidden);
    linear_rows(weights.squeeze, 0, op.squeeze, nullptr, nullptr, Activation::relu, mean, op.in_channels, hidden,
                model_.dense_level);
    linear_rows(weights.excite, 0, op.out_channels, nullptr, nullptr, Activation::none, hidden, op.squeeze, scale,
                model_.dense_level);
    for (std::size_t o = 0; o < z(op.out_channels); ++o) scale[o] = weights.scale[o] / (1.0f + std::exp(-scale[o]));
  } else {
    std::memcpy(scale, weights.scale.data(), z(op.out_channels) * sizeof(float));
  }
}

void Executor::binary(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const OpPlan& planned = plan_.ops[index];
  BinaryWeights& weights = model_.weights[index].binary;
  const ValuePlan& to = plan_.values[index + 1];
  if (planned.binarizes_image) binarize_input(index, count);
  std::fill_n(chosen_.begin(), count, 0);
  if (planned.needs_sums) pool_.loop(count, [&](int slot, int) { choose_expert(index, slot); });
  for (int slot = 0; slot < count; ++slot) weights.experts.lay_out(chosen_[z(slot)], scratch_.data());
  std::iota(order_.begin(), order_.begin() + count, 0);
  std::stable_sort(order_.begin(), order_.begin() + count, [&](int a, int b) { return chosen_[z(a)] < chosen_[z(b)]; });

  Epilogue shared;
  shared.slope = pointer(weights.slope);
  if (op.skip >= 0) {
    shared.skip_stride = plan_.values[z(op.skip)].stride;
    shared.skip_type = plan_.values[z(op.skip)].type;
  }
  shared.stream_stride = to.stride;
  shared.stream_type = to.type;
  const bool emits = planned.emits_for >= 0;
  const OpPlan* next = emits ? &plan_.ops[z(planned.emits_for)] : nullptr;
  if (emits) {
    const BinaryWeights& reader = model_.weights[z(planned.emits_for)].binary;
    shared.bn_scale = reader.norm_scale.data();
    shared.bn_shift = reader.norm_shift.data();
    shared.bits_per_group = next->conv.in_per_group();
  }
  over_rows(count, to.height, order_.data(), [&](int slot, int begin, int end, int thread) {
    Epilogue epilogue = shared;
    epilogue.scale = planned.needs_sums ? at(slot, planned.scale) : weights.scale.data();
    epilogue.skip = op.skip >= 0 ? value(slot, z(op.skip)) : nullptr;
    epilogue.stream = value(slot, index + 1);
    if (emits) {
      epilogue.bits = at<std::uint64_t>(slot, next->bits);
      epilogue.row_sums = next->needs_sums ? at(slot, next->sums) : nullptr;
    }
    ConvTask task;
    task.shape = &planned.conv;
    task.weights = &weights.experts[chosen_[z(slot)]];
    task.input = at<std::uint64_t>(slot, planned.bits);
    task.epilogue = &epilogue;
    task.row_begin = begin;
    task.row_end = end;
    task.scratch = scratch_.data() + z(thread) * plan_.scratch_bytes;
    weights.kernel->run(task);
  });
}

}  // namespace ebnet
