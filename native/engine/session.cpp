#include "engine/session.h"

#include <algorithm>
#include <system_error>

namespace ebnet {

namespace {

// Images under way at once: one for each thread, and as many more as leave their activations near the core, where a
// layer's weights then serve several images. (Binary weights are small: further out, activations cost more than weights
// save, and a batch would be slower than its images one by one.)
constexpr int kMostSlots = 8;
constexpr std::size_t kCacheBytes = std::size_t{2} << 20;

std::vector<OpProfile> profile_of(const Model& model, const Plan& plan, const std::vector<double>& seconds) {
  std::vector<OpProfile> profile;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Op& op = model.program.ops[i];
    const ValuePlan& value = plan.values[i + 1];
    const char* kind = op_kind_name(op.kind);
    const char* kernel = op.kind == OpKind::Binary ? plan.ops[i].kernel->name : "";
    profile.push_back({op.name.empty() ? kind : op.name,
                       kind,
                       kernel,
                       plan.ops[i].macs,
                       seconds[i],
                       {value.height, value.width, value.channels}});
  }
  return profile;
}

void require_images(int batch) {
  if (batch < 1) fail(Error::BatchEmpty, "a batch of " + std::to_string(batch) + " images; give at least one");
}

}  // namespace

Session::Session(std::shared_ptr<Plans> plans, int threads) try : plans_(std::move(plans)), pool_(threads) {
} catch (const std::system_error& error) {
  fail(Error::ThreadsUnavailable, "threads=" + std::to_string(threads) + ": the system has not so many to give (" +
                                      error.what() + "); use fewer");
}

int Session::slots_for(const Plan& plan, int batch) const {
  const std::size_t bytes = std::max<std::size_t>(plan.arena_bytes, 1);
  const std::size_t cached = std::clamp<std::size_t>(kCacheBytes / bytes, 1, kMostSlots);
  const std::size_t wanted = std::max<std::size_t>(cached, static_cast<std::size_t>(pool_.threads()));
  const std::uint64_t pixels = plan.values[0].pixels();
  const std::uint64_t memory = plans_->limits().memory_for(plans_->model().file_bytes, pixels);
  const std::size_t allowed = std::max<std::size_t>(memory / bytes, 1);
  return std::min(batch, static_cast<int>(std::min(wanted, allowed)));
}

std::shared_ptr<const Plan> Session::prepare(int batch, int height, int width, int* slots) {
  std::shared_ptr<const Plan> plan = plans_->of(height, width);
  *slots = slots_for(*plan, batch);
  workspace_.fit(*plan, *slots, pool_.threads());
  return plan;
}

Status Session::plan(int batch, int height, int width) {
  return guarded([&] {
    require_images(batch);
    const std::lock_guard<std::mutex> lock(mutex_);
    int slots = 0;
    prepare(batch, height, width, &slots);
  });
}

Status Session::run(const Images& images, const Results& results, const Poll& poll) {
  return guarded([&] {
    require_images(images.batch);
    const std::lock_guard<std::mutex> lock(mutex_);
    if ((images.reals == nullptr) == (images.bytes == nullptr) || results.logits == nullptr) {
      fail(Error::ArgumentInvalid, "give images, as reals or as bytes, and room for the logits");
    }
    cancelled_.store(false, std::memory_order_relaxed);
    int slots = 0;
    const std::shared_ptr<const Plan> plan = prepare(images.batch, images.height, images.width, &slots);
    const Model& model = plans_->model();
    std::vector<double> seconds(results.ops != nullptr ? plan->ops.size() : 0);
    Record record;
    record.experts = results.experts;
    record.values = results.values;
    record.seconds = results.ops != nullptr ? seconds.data() : nullptr;
    Watch watch(cancelled_, poll);
    Executor(model, *plan, slots, workspace_, pool_, watch).run(images, results.logits, record);
    if (results.ops != nullptr) *results.ops = profile_of(model, *plan, seconds);
  });
}

std::size_t Session::bytes() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return workspace_.bytes();
}

}  // namespace ebnet
