// Ops with int8 weights: the bytes they read, where no maker left them, and the image's pixels.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine/error.h"
#include "engine/executor.h"
#include "engine/pixels.h"

namespace ebnet {

namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

}  // namespace

void Executor::int8_op(std::size_t index, int count) {
  const Op& op = model_.program.ops[index];
  const OpPlan& planned = plan_.ops[index];
  const Int8Weights& weights = model_.weights[index].int8;
  const ValuePlan& from = plan_.values[z(op.inputs[0])];
  const ValuePlan& to = plan_.values[index + 1];
  if (planned.makes_bytes) {
    const double work = static_cast<double>(from.pixels()) * from.channels;
    over_rows(count, from.height, work, nullptr, [&](int slot, int begin, int end, int) {
      const std::size_t pixel = z(begin) * z(from.width);
      to_bytes(at(slot, from.offset) + pixel * from.stride, from.stride, (end - begin) * from.width, from.channels,
               weights.inverse.data(), weights.zero.data(),
               at<std::uint8_t>(slot, planned.bytes) + pixel * z(from.channels), z(from.channels), model_.int8_level);
    });
  }
  const std::size_t bytes = planned.makes_bytes ? planned.bytes : from.offset;
  const std::size_t stride = planned.makes_bytes ? z(from.channels) : from.stride;
  const auto output = [&](int slot) {
    Int8Output result;
    if (to.bytes) {
      result.bytes = at<std::uint8_t>(slot, to.offset);
    } else {
      result.reals = at(slot, to.offset);
    }
    result.stride = to.stride;
    result.code = to.code;
    return result;
  };
  if (op.kind == OpKind::Linear) {
    // A few blocks of outputs serve all images while their weights are in cache.
    constexpr int kBlocks = 4;
    const int blocks = int8_blocks(weights.conv);
    pool_.loop((blocks + kBlocks - 1) / kBlocks, [&](int item, int thread) {
      if (watch_.stopped(thread)) return;
      const int begin = item * kBlocks;
      for (int slot = 0; slot < count; ++slot) {
        int8_linear(weights.conv, at<std::uint8_t>(slot, bytes), output(slot), begin, std::min(begin + kBlocks, blocks),
                    model_.int8_level);
      }
    });
    return;
  }
  over_rows(count, to.height, planned.work, nullptr, [&](int slot, int begin, int end, int thread) {
    int8_conv(weights.conv, planned.conv, at<std::uint8_t>(slot, bytes), stride, output(slot), begin, end,
              model_.int8_level, workspace_.scratch(thread));
  });
}

// The image as the pixels it was: of bytes they are at hand, of normalised reals they are found again.
void Executor::load_bytes(const Images& images, int first, int count) {
  const int channels = model_.program.in_channels;
  const std::size_t row = z(images.width) * z(channels);
  const std::size_t image = plan_.values[0].pixels() * z(channels);
  const std::size_t plane = plan_.values[0].pixels();
  std::vector<float> inverse, zero;
  for (int c = 0; c < channels; ++c) {
    inverse.push_back(255.0f * model_.preprocessing.std[z(c)]);
    zero.push_back(255.0f * model_.preprocessing.mean[z(c)]);
  }
  std::atomic<bool> finite{true};
  over_rows(count, images.height, static_cast<double>(image), nullptr, [&](int slot, int begin, int end, int) {
    auto* const to = at<std::uint8_t>(slot, plan_.values[0].offset) + z(begin) * row;
    const std::size_t from = z(first + slot) * image;
    if (images.bytes != nullptr) {
      std::memcpy(to, images.bytes + from + z(begin) * row, z(end - begin) * row);
      return;
    }
    const std::size_t pixel = z(begin) * z(images.width);
    if (!pixels_of_planes(images.reals + from + pixel, plane, channels, z(end - begin) * z(images.width),
                          inverse.data(), zero.data(), to)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  if (!finite.load()) fail_not_finite(first, count);
}

}  // namespace ebnet
