#include "engine/plans.h"

#include <algorithm>

namespace ebnet {

namespace {

// Some tens of kilobytes each; a caller with more sizes than these plans the least recent ones again.
constexpr std::size_t kMostPlans = 32;

}  // namespace

Plans::Plans(std::shared_ptr<const Model> model, StreamType stream, const Limits& limits, const Cache& cache)
    : model_(std::move(model)), stream_(stream), limits_(limits), choice_(model_->isa, cache) {}

std::shared_ptr<const Plan> Plans::of(int height, int width) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find(height, width);
}

std::shared_ptr<const Plan> Plans::last() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return plans_.empty() ? find(model_->preprocessing.size, model_->preprocessing.size) : plans_.back();
}

std::shared_ptr<const Plan> Plans::find(int height, int width) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const std::shared_ptr<const Plan>& plan) {
    return plan->height == height && plan->width == width;
  });
  if (found != plans_.end()) {
    std::rotate(found, found + 1, plans_.end());
    return plans_.back();
  }
  auto plan = std::make_shared<const Plan>(make_plan(*model_, height, width, stream_, limits_, choice_));
  choice_.save();
  if (plans_.size() == kMostPlans) plans_.erase(plans_.begin());
  plans_.push_back(plan);
  return plan;
}

}  // namespace ebnet
