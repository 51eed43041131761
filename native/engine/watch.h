// Whether a run is to go on: another thread may cancel it, and its own thread may be asked now and then (Python asks
// whether Ctrl-C was pressed). Looked at between pieces of an op, which are small enough for a tenth of a second.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>

#include "engine/error.h"

namespace ebnet {

// Asked in the caller's own thread; true where the run is to stop.
using Poll = std::function<bool()>;

class Watch {
 public:
  Watch(std::atomic<bool>& cancelled, const Poll& poll) : cancelled_(cancelled), poll_(poll) {}

  // `thread` 0 is the caller's.
  bool stopped(int thread) {
    if (thread == 0 && poll_) ask();
    return cancelled_.load(std::memory_order_relaxed);
  }
  // Throws Cancelled.
  void check() {
    if (stopped(0)) fail(Error::Cancelled, "the run was cancelled");
  }

 private:
  void ask() {
    constexpr auto kBetween = std::chrono::milliseconds(20);
    const auto now = std::chrono::steady_clock::now();
    if (now - asked_ < kBetween) return;
    asked_ = now;
    if (poll_()) cancelled_.store(true, std::memory_order_relaxed);
  }

  std::atomic<bool>& cancelled_;
  const Poll& poll_;
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

}  // namespace ebnet
