// One plane of a max pool.
//
// Input row y = stride * (place) + phase: the plane is first split into its stride x stride phases, each a small map with a
// margin of -infinity. A tap then sees one phase, shifted by whole places, so that all positions of the plane are compared
// in vectors, however short its rows are.
#pragma once
#include "train/max_pool.h"
#include "train/phase_rows.h"
#include "train/phases.h"

namespace ebnet {
namespace {

void split_phases(const MaxPool& task, const PoolPhases& phases, const float* x, float* maps) {
  const float lowest = -__builtin_inff(), *end = task.x + size(task.planes * task.in_h) * size(task.in_w);
  for (size_t i = 0; i < size(task.stride * task.stride) * phases.map; ++i) maps[i] = lowest;
  const int room = ((task.in_w + task.stride - 1) / task.stride + kLanes - 1) / kLanes * kLanes;
  float* first = maps + size(phases.margin * phases.pitch + phases.margin);
  for (int row = 0; row < task.in_h; first += phases.pitch) {
    float* to = first;
    for (int phase = 0; phase < task.stride && row < task.in_h; ++phase, ++row, x += task.in_w) {
      split_row(x, end, task.in_w, task.stride, lowest, room, phases.map, to);
      to += size(task.stride) * phases.map;
    }
  }
}

// Where the window's taps lie in the phases, from the place of an output.
struct PoolTaps {
  PoolTaps(const MaxPool& task, const PoolPhases& phases) {
    for (int ky = 0; ky < task.kernel; ++ky) {
      const Split y(ky - task.padding, task.stride);
      for (int kx = 0; kx < task.kernel; ++kx) {
        const Split x(kx - task.padding, task.stride);
        places[count++] = size(y.phase * task.stride + x.phase) * phases.map +
                          size((y.shift + phases.margin) * phases.pitch + x.shift + phases.margin);
      }
    }
  }
  int count = 0;
  size_t places[UINT8_MAX];
};

// A value beats the best so far if it is larger or is no number, as torch has it.
void max_pool_plane(const MaxPool& task, const PoolPhases& phases, int plane, float* scratch) {
  const int image = plane / task.channels, channel = plane % task.channels;
  const size_t outputs = size(phases.out_h) * size(phases.out_w);
  split_phases(task, phases, task.x + size(plane) * size(task.in_h) * size(task.in_w), scratch);
  float* values = scratch + size(task.stride * task.stride) * phases.map;
  int* places = reinterpret_cast<int*>(values + phases.positions);
  const PoolTaps taps(task, phases);
  for (size_t at = 0; at < phases.positions; at += kLanes) {
    Vector best = splat(-__builtin_inff());
    Mask where = (task.padding * task.kernel + task.padding) - Mask{};  // always within the map
    for (int tap = 0; tap < taps.count; ++tap) {
      const Vector value = load(scratch + taps.places[tap] + at);
      const Mask better = (value > best) | (value != value);
      best = better ? value : best;
      where = better ? tap - Mask{} : where;
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
