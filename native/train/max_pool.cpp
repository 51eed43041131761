#include "train/max_pool.h"

#include <algorithm>
#include <cstring>

#include "train/step_levels.h"
#include "train/threads.h"

namespace ebnet {
namespace {

template <typename Run>
void for_planes_on_threads(const MaxPool& task, int threads, Run run) {
  const int parts = std::max(1, std::min(threads, task.planes));
  on_threads(parts, [&](int part) {
    const auto cut = [&](int p) { return static_cast<int>(static_cast<std::int64_t>(task.planes) * p / parts); };
    for (int plane = cut(part); plane < cut(part + 1); ++plane) run(plane);
  });
}

}  // namespace

int MaxPool::out_h() const { return (in_h + 2 * padding - kernel) / stride + 1; }
int MaxPool::out_w() const { return (in_w + 2 * padding - kernel) / stride + 1; }

PoolPhases::PoolPhases(const MaxPool& task) : out_h(task.out_h()), out_w(task.out_w()) {
  constexpr int kWidest = 16;  // lanes of any level
  const int strides = task.stride - 1;
  margin = (task.padding + strides) / task.stride;
  const int shifts = (task.kernel - 1 - task.padding) / task.stride;  // a tap's farthest place to the right
  pitch = margin + std::max((task.in_w + strides) / task.stride, out_w + shifts);
  const int rows = margin + std::max((task.in_h + strides) / task.stride, out_h + shifts);
  positions = static_cast<std::size_t>((out_h * pitch + kWidest - 1) / kWidest * kWidest);
  // The last vector of the last tap may read beyond the last row.
  map = static_cast<std::size_t>((rows + 1) * pitch + margin + shifts + kWidest) + positions - static_cast<std::size_t>(out_h * pitch);
  floats = static_cast<std::size_t>(task.stride * task.stride) * map + 2 * positions;
}

void max_pool(const MaxPool& task, int threads, DenseLevel level) {
  const auto run = step_kernels(level).max_pool;
  const PoolPhases phases(task);
  for_planes_on_threads(task, threads, [&](int plane) { run(task, phases, plane, scratch(phases.floats)); });
}

void max_pool_gradient(const MaxPool& task, int threads) {
  const std::size_t in = static_cast<std::size_t>(task.in_h) * static_cast<std::size_t>(task.in_w);
  const std::size_t out = static_cast<std::size_t>(task.out_h()) * static_cast<std::size_t>(task.out_w());
  int from_corner[UINT8_MAX];  // of a place in the window, in the map
  for (int place = 0; place < task.kernel * task.kernel; ++place) {
    from_corner[place] = (place / task.kernel - task.padding) * task.in_w + place % task.kernel - task.padding;
  }
  for_planes_on_threads(task, threads, [&](int plane) {
    const std::size_t image = static_cast<std::size_t>(plane / task.channels), own = static_cast<std::size_t>(plane);
    const float* dy = task.dy + image * task.y_stride + (own - image * static_cast<std::size_t>(task.channels)) * out;
    const std::uint8_t* place = task.place + own * out;
    float* dx = task.dx + own * in;
    if (!task.accumulate) std::memset(dx, 0, in * sizeof(float));
    for (int y = 0; y < task.out_h(); ++y) {
      for (int x = 0; x < task.out_w(); ++x, ++dy, ++place) {
        dx[y * task.stride * task.in_w + x * task.stride + from_corner[*place]] += *dy;
      }
    }
  });
}

}  // namespace ebnet
