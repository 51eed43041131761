// The plans of one model, one for every size it was run at, each made once and shared by all sessions that run alike.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/kernel_choice.h"
#include "engine/limits.h"
#include "engine/model.h"
#include "engine/plan.h"

namespace ebnet {

class Plans {
 public:
  Plans(std::shared_ptr<const Model> model, StreamType stream, const Limits& limits, const Cache& cache);

  const Model& model() const { return *model_; }
  const Limits& limits() const { return limits_; }
  StreamType stream() const { return stream_; }

  std::shared_ptr<const Plan> of(int height, int width);
  // Of the size last asked for; before that, of the size the file was trained for.
  std::shared_ptr<const Plan> last();

 private:
  std::shared_ptr<const Plan> find(int height, int width);

  const std::shared_ptr<const Model> model_;
  const StreamType stream_;
  const Limits limits_;
  std::mutex mutex_;
  KernelChoice choice_;
  std::vector<std::shared_ptr<const Plan>> plans_;  // the last used is the last
};

}  // namespace ebnet
