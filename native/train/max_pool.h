// Max pool, forward and backward, as stems use it: one of the window's places is kept for each output as a byte.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace ebnet {

struct MaxPool {
  int planes = 0, channels = 0;  // planes = batch * channels
  int in_h = 0, in_w = 0, kernel = 1, stride = 1, padding = 0;  // kernel > 2 * padding, kernel * kernel <= 255
  const float* x = nullptr;
  float* y = nullptr;
  std::size_t y_stride = 0;      // floats from one image of y (or dy) to the next
  std::uint8_t* place = nullptr;  // [planes][out h][out w], row * kernel + column; may be null forward

  const float* dy = nullptr;
  float* dx = nullptr;
  bool accumulate = false;

  int out_h() const;
  int out_w() const;
};

// The maps of a plane's phases (max_pool_kernel.h).
struct PoolPhases {
  explicit PoolPhases(const MaxPool& task);
  int out_h, out_w;
  int margin;             // places around a phase's map
  int pitch;              // from a row of it to the next
  std::size_t positions;  // of the output at that pitch, in whole vectors of any level
  std::size_t map;        // floats of a phase
  std::size_t floats;     // of scratch
};

void max_pool(const MaxPool& task, int threads, DenseLevel level);
void max_pool_gradient(const MaxPool& task, int threads);

}  // namespace ebnet
