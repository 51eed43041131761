// One plane of a max pool.
//
// Input row y = stride * (place) + phase: the plane is first split into its stride x stride phases, each a small map with a
// margin of -infinity. A tap then sees one phase, shifted by whole places, so that all positions of the plane are compared
// in vectors, however short its rows are.
#pragma once
#include "base/lanes.h"
#include "train/max_pool.h"

namespace ebnet {
namespace {

// A place of the window, or of the plane: the phase, and the shift in whole strides.
struct Split {
  Split(int offset, int stride) {
    shift = offset >= 0 ? offset / stride : -((stride - 1 - offset) / stride);
    phase = offset - shift * stride;
  }
  int shift, phase;
};

void split_phases(const MaxPool& task, const PoolPhases& phases, const float* x, float* maps) {
  const float lowest = -__builtin_inff();
  for (size_t i = 0; i < size(task.stride * task.stride) * phases.map; ++i) maps[i] = lowest;
  for (int row = 0; row < task.in_h; ++row, x += task.in_w) {
    const int down = row / task.stride + phases.margin, phase = row % task.stride;
    for (int right = 0; right < task.stride; ++right) {
      float* to = maps + size(phase * task.stride + right) * phases.map + size(down * phases.pitch + phases.margin);
      const int count = (task.in_w - right + task.stride - 1) / task.stride;
      if (task.stride == 2) {
        for (int i = 0; i < count; ++i) to[i] = x[2 * i + right];
      } else {
        for (int i = 0; i < count; ++i) to[i] = x[task.stride * i + right];
      }
    }
  }
}

// A value beats the best so far if it is larger or is no number, as torch has it.
void max_pool_plane(const MaxPool& task, const PoolPhases& phases, int plane, float* scratch) {
  const int image = plane / task.channels, channel = plane % task.channels;
  const size_t outputs = size(phases.out_h) * size(phases.out_w);
  split_phases(task, phases, task.x + size(plane) * size(task.in_h) * size(task.in_w), scratch);
  float* values = scratch + size(task.stride * task.stride) * phases.map;
  int* places = reinterpret_cast<int*>(values + phases.positions);
  for (size_t at = 0; at < phases.positions; at += kLanes) {
    Vector best = splat(-__builtin_inff());
    Mask where = (task.padding * task.kernel + task.padding) - Mask{};  // always within the map
    for (int ky = 0; ky < task.kernel; ++ky) {
      const Split y(ky - task.padding, task.stride);
      for (int kx = 0; kx < task.kernel; ++kx) {
        const Split x(kx - task.padding, task.stride);
        const float* map = scratch + size(y.phase * task.stride + x.phase) * phases.map;
        const Vector value = load(map + (y.shift + phases.margin) * phases.pitch + x.shift + phases.margin + at);
        const Mask better = (value > best) | (value != value);
        best = better ? value : best;
        where = better ? (ky * task.kernel + kx) - Mask{} : where;
      }
    }
    store(values + at, best);
    std::memcpy(places + at, &where, sizeof where);
  }
  float* y = task.y + size(image) * task.y_stride + size(channel) * outputs;
  for (int row = 0; row < phases.out_h; ++row) {
    for (int i = 0; i < phases.out_w; ++i) y[row * phases.out_w + i] = values[row * phases.pitch + i];
  }
  if (task.place == nullptr) return;
  std::uint8_t* place = task.place + size(plane) * outputs;
  for (int row = 0; row < phases.out_h; ++row) {
    for (int i = 0; i < phases.out_w; ++i) {
      place[row * phases.out_w + i] = static_cast<std::uint8_t>(places[row * phases.pitch + i]);
    }
  }
}

}  // namespace
}  // namespace ebnet
