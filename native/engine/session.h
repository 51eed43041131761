// One caller's working state: its memory and its threads, over a model and plans that it shares with others. A session
// runs one call at a time (others wait for their turn); sessions run side by side.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/plans.h"
#include "engine/watch.h"
#include "engine/workspace.h"

namespace ebnet {

inline constexpr int kMaxThreads = 256;

struct OpProfile {
  std::string name;  // of the op's tensors, or of its kind
  const char* kind;
  const char* kernel;      // of a binary op, else ""
  double macs;             // of one image
  double seconds;          // of the whole batch
  std::vector<int> shape;  // of the result: height, width, channels
};

// Where results go besides the logits. What is null is not recorded.
struct Results {
  float* logits = nullptr;                            // [batch][classes]
  std::int64_t* experts = nullptr;                    // [binary layers][batch]
  std::vector<std::vector<float>>* values = nullptr;  // per op, each [batch][pixel][channel]
  std::vector<OpProfile>* ops = nullptr;              // each op's time
};

class Session {
 public:
  // `threads` of one call, the caller's included. Throws ThreadsUnavailable.
  Session(std::shared_ptr<Plans> plans, int threads);

  // Makes ready for a size, so that the first run pays only for the experts it is the first to choose.
  Status plan(int batch, int height, int width);
  Status run(const Images& images, const Results& results, const Poll& poll = {});
  // The run under way, if any, ends with Cancelled. From any thread.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // Of activations and scratch.
  std::size_t bytes();

 private:
  // Images under way at once.
  int slots_for(const Plan& plan, int batch) const;
  // With the lock held: the plan of a size, and room for it.
  std::shared_ptr<const Plan> prepare(int batch, int height, int width, int* slots);

  const std::shared_ptr<Plans> plans_;
  ThreadPool pool_;
  std::mutex mutex_;
  Workspace workspace_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace ebnet
