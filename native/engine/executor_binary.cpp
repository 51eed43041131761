// The binary op: its bits where no epilogue made them, its gate, and the convolution of each image with its expert.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bits/binarize.h"
#include "engine/ahead.h"
#include "engine/executor.h"
#include "engine/linear_rows.h"

namespace ebnet {

namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

const float* pointer(const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); }

}  // namespace

void Executor::binarize_input(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const OpPlan& planned = plan_.ops[index];
  const BinaryWeights& weights = model_.weights[index].binary;
  const auto input = z(op.inputs[0]);
  const ValuePlan& from = plan_.values[input];
  const std::size_t words = z(from.width) * z(planned.conv.words_per_pixel());
  over_rows(count, from.height, static_cast<double>(from.pixels()) * from.channels, nullptr, [&](int slot, int begin, int end, int) {
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
  row_means(sums, from.height, from.channels, static_cast<double>(from.pixels()), mean, model_.dense_level);
  for (std::size_t c = 0; c < z(from.channels); ++c) mean[c] = weights.norm_scale[c] * mean[c] + weights.norm_shift[c];
  if (op.experts > 1) {
    float* logits = at(slot, planned.gate);
    linear_rows(weights.gate_weight, 0, op.experts, weights.gate_bias.data(), nullptr, Activation::none, mean,
                op.in_channels, logits, model_.dense_level);
    int best = 0;
    for (int expert = 1; expert < op.experts; ++expert) {
      if (logits[expert] > logits[best]) best = expert;
    }
    workspace_.chosen[z(slot)] = best;
  }
  float* scale = at(slot, planned.scale);
  const float* own = weights.scale.data();
  if (op.expert_scales) own += z(workspace_.chosen[z(slot)]) * z(op.out_channels);
  if (op.squeeze > 0) {
    float* hidden = at(slot, planned.hidden);
    linear_rows(weights.squeeze, 0, op.squeeze, nullptr, nullptr, Activation::relu, mean, op.in_channels, hidden,
                model_.dense_level);
    linear_rows(weights.excite, 0, op.out_channels, nullptr, nullptr, Activation::none, hidden, op.squeeze, scale,
                model_.dense_level);
    for (std::size_t o = 0; o < z(op.out_channels); ++o) scale[o] = own[o] / (1.0f + std::exp(-scale[o]));
  } else {
    std::memcpy(scale, own, z(op.out_channels) * sizeof(float));
  }
}

// Weights come from far away where other work has passed through the caches since the last image. So the next binary
// layer's are fetched while this one computes, and a part of those of real layers. Its expert is not known yet, but images
// that follow one another often choose alike. Up to kMostAhead + 1 ranges; how many.
int Executor::weights_ahead(std::size_t index, MemoryRange* ranges) {
  MemoryRange* end = ranges;
  for (std::size_t next = index + 1; next < plan_.ops.size(); ++next) {
    if (plan_.ops[next].experts == nullptr) continue;
    const MemoryRange expert = plan_.ops[next].experts->range(workspace_.last_chosen[next]);
    if (expert.bytes > 0) *end++ = expert;
    break;
  }
  end = std::copy(model_.ahead[index].begin(), model_.ahead[index].end(), end);
  return static_cast<int>(end - ranges);
}

void Executor::binary(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const OpPlan& planned = plan_.ops[index];
  const BinaryWeights& weights = model_.weights[index].binary;
  const ValuePlan& to = plan_.values[index + 1];
  if (planned.binarizes_image) binarize_input(index, count);
  std::fill_n(workspace_.chosen.begin(), count, 0);
  if (planned.needs_sums) pool_.loop(count, [&](int slot, int) { choose_expert(index, slot); });
  for (int slot = 0; slot < count; ++slot) {
    workspace_.weights[z(slot)] = &planned.experts->expert(workspace_.chosen[z(slot)], workspace_.scratch(0));
  }
  workspace_.last_chosen[index] = workspace_.chosen[z(count - 1)];
  MemoryRange ahead[kMostAhead + 1];
  const int ahead_count = weights_ahead(index, ahead);
  std::iota(workspace_.order.begin(), workspace_.order.begin() + count, 0);
  std::stable_sort(workspace_.order.begin(), workspace_.order.begin() + count, [&](int a, int b) { return workspace_.chosen[z(a)] < workspace_.chosen[z(b)]; });

  Epilogue shared;
  shared.shift = pointer(weights.shift);
  shared.slope = pointer(weights.slope);
  shared.act_last = op.act_last;
  shared.after = pointer(weights.after);
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
  over_rows(count, to.height, planned.work, workspace_.order.data(), [&](int slot, int begin, int end, int thread) {
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
    task.weights = workspace_.weights[z(slot)];
    task.input = at<std::uint64_t>(slot, planned.bits);
    task.epilogue = &epilogue;
    task.row_begin = begin;
    task.row_end = end;
    task.scratch = workspace_.scratch(thread);
    if (begin == 0 && slot == workspace_.order[z(count - 1)]) {  // one of all pieces, the last image's
      task.ahead = ahead;
      task.ahead_count = ahead_count;
    }
    planned.kernel->run(task);
  });
}

}  // namespace ebnet
