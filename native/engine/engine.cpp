#include "engine/engine.h"

namespace ebnet {

namespace {

// Sessions kept for later calls: more than these ran at once only for a moment.
constexpr std::size_t kMostIdle = 16;

}  // namespace

Engine::Engine(std::shared_ptr<const Model> model, const Options& options)
    : options_(options), plans_(std::make_shared<Plans>(std::move(model), options.stream, options.limits, options.cache)) {
  idle_.reserve(kMostIdle);
}

Status Engine::load(const std::shared_ptr<const Source>& source, const Options& options,
                    std::unique_ptr<Engine>* engine) {
  return guarded([&] {
    if (options.threads < 1 || options.threads > kMaxThreads) {
      fail(Error::ArgumentInvalid,
           "threads=" + std::to_string(options.threads) + ": expected 1 to " + std::to_string(kMaxThreads));
    }
    auto model = std::make_shared<const Model>(read_model(source, options.limits));
    std::unique_ptr<Engine> made(new Engine(std::move(model), options));
    made->idle_.push_back(std::make_unique<Session>(made->plans_, options.threads));
    *engine = std::move(made);
  });
}

Status Engine::load_file(const std::string& path, const Options& options, std::unique_ptr<Engine>* engine) {
  Status status;
  const Status opened = guarded([&] { status = load(std::make_shared<FileSource>(path), options, engine); });
  return opened ? status : opened;
}

template <class Work>
Status Engine::with_session(Work&& work) {
  std::unique_ptr<Session> session;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (session == nullptr) {
    const Status opened = open(&session);
    if (!opened) return opened;
  }
  Status status = work(*session);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(session));
  return status;
}

Status Engine::plan(int batch, int height, int width) {
  return with_session([&](Session& session) { return session.plan(batch, height, width); });
}

Status Engine::run(const Images& images, const Results& results, const Poll& poll) {
  return with_session([&](Session& session) { return session.run(images, results, poll); });
}

Status Engine::open(std::unique_ptr<Session>* session) const {
  return guarded([&] { *session = std::make_unique<Session>(plans_, options_.threads); });
}

std::vector<std::size_t> Engine::session_bytes() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::size_t> bytes;
  for (const std::unique_ptr<Session>& session : idle_) bytes.push_back(session->bytes());
  return bytes;
}

Status Engine::kernels(std::vector<std::string>* names) const {
  return guarded([&] {
    names->clear();
    for (const OpPlan& op : plans_->last()->ops) {
      if (op.kernel != nullptr) names->emplace_back(op.kernel->name);
    }
  });
}

}  // namespace ebnet
