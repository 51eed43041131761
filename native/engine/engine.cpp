#include "engine/engine.h"

#include <algorithm>

namespace ebnet {

namespace {

// Images under way at once: one for each thread, and as many more as leave their activations near the core, where a
// layer's weights then serve several images. (Binary weights are small: further out, activations cost more than weights
// save, and a batch would be slower than its images one by one.)
constexpr int kMostSlots = 8;
constexpr std::size_t kCacheBytes = std::size_t{2} << 20;

void require_images(int batch) {
  if (batch < 1) fail(Error::BatchEmpty, "a batch of " + std::to_string(batch) + " images; give at least one");
}

}  // namespace

Status Engine::load(const std::shared_ptr<const Source>& source, const Options& options,
                    std::unique_ptr<Engine>* engine, const Limits& limits) {
  return guarded([&] {
    if (options.threads < 1 || options.threads > kMaxThreads) {
      fail(Error::ArgumentInvalid,
           "threads=" + std::to_string(options.threads) + ": expected 1 to " + std::to_string(kMaxThreads));
    }
    engine->reset(new Engine(read_model(source, limits), options, limits));
  });
}

Status Engine::load_file(const std::string& path, const Options& options, std::unique_ptr<Engine>* engine) {
  Status status;
  const Status opened = guarded([&] { status = load(std::make_shared<FileSource>(path), options, engine); });
  return opened ? status : opened;
}

int Engine::slots_for(const Plan& plan, int batch) const {
  const std::size_t bytes = std::max<std::size_t>(plan.arena_bytes, 1);
  const std::size_t cached = std::clamp<std::size_t>(kCacheBytes / bytes, 1, kMostSlots);
  const std::size_t wanted = std::max<std::size_t>(cached, static_cast<std::size_t>(pool_.threads()));
  const std::size_t allowed = std::max<std::size_t>(limits_.activation_bytes / bytes, 1);
  return std::min(batch, static_cast<int>(std::min(wanted, allowed)));
}

void Engine::prepare(int batch, int height, int width) {
  require_images(batch);
  const bool same_size = executor_ != nullptr && executor_->plan().height == height && executor_->plan().width == width;
  if (same_size && executor_->slots() >= slots_for(executor_->plan(), batch)) return;
  Plan plan = make_plan(model_, height, width, options_.stream, limits_);
  // The first size decides: experts are laid out for their kernel, and sizes may alternate.
  if (executor_ == nullptr && choose_kernels(plan)) {
    plan = make_plan(model_, height, width, options_.stream, limits_);
  }
  const int slots = slots_for(plan, batch);
  executor_.reset();
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (model_.program.ops[i].kind == OpKind::Conv) model_.weights[i].conv.shape = plan.ops[i].conv;
  }
  executor_ = std::make_unique<Executor>(model_, std::move(plan), slots, pool_);
}

bool Engine::choose_kernels(const Plan& plan) {
  bool changed = false;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (model_.program.ops[i].kind != OpKind::Binary) continue;
    BinaryWeights& weights = model_.weights[i].binary;
    const Kernel& kernel = choice_.choose(plan.ops[i].conv);
    if (&kernel == weights.kernel) continue;
    weights.kernel = &kernel;
    weights.experts.use(kernel);
    changed = true;
  }
  choice_.save();
  return changed;
}

Status Engine::plan(int batch, int height, int width) {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    prepare(batch, height, width);
  });
}

void Engine::run_recorded(const Images& images, float* logits, const Record& record) {
  require_images(images.batch);
  if ((images.reals == nullptr) == (images.bytes == nullptr) || logits == nullptr) {
    fail(Error::ArgumentInvalid, "give images, as reals or as bytes, and room for the logits");
  }
  prepare(images.batch, images.height, images.width);
  executor_->run(images, logits, record);
}

Status Engine::run(const Images& images, float* logits, std::int64_t* experts) {
  return trace(images, logits, experts, nullptr);
}

Status Engine::trace(const Images& images, float* logits, std::int64_t* experts,
                     std::vector<std::vector<float>>* values) {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    Record record;
    record.experts = experts;
    record.values = values;
    run_recorded(images, logits, record);
  });
}

Status Engine::profile(const Images& images, float* logits, std::vector<OpProfile>* ops) {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<double> seconds(model_.program.ops.size(), 0.0);
    Record record;
    record.seconds = seconds.data();
    run_recorded(images, logits, record);
    ops->clear();
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const Op& op = model_.program.ops[i];
      const ValuePlan& value = executor_->plan().values[i + 1];
      const char* kind = op_kind_name(op.kind);
      const char* kernel = op.kind == OpKind::Binary ? model_.weights[i].binary.kernel->name : "";
      ops->push_back({op.name.empty() ? kind : op.name,
                      kind,
                      kernel,
                      executor_->plan().ops[i].macs,
                      seconds[i],
                      {value.height, value.width, value.channels}});
    }
  });
}

}  // namespace ebnet
