// The engine: a model and as many sessions as there are calls at the same time. All public functions may be called from
// several threads; their calls run side by side.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/limits.h"
#include "engine/model.h"
#include "engine/plans.h"
#include "engine/session.h"

namespace ebnet {

// How a file is to be run.
struct Options {
  int threads = 1;                       // of one call, the caller's included
  StreamType stream = StreamType::fp32;  // of the residual stream
  Limits limits = {};
  Cache cache = {};  // of the kernels that were measured
};

class Engine {
 public:
  // The engine keeps the source, see read_model.
  static Status load(const std::shared_ptr<const Source>& source, const Options& options,
                     std::unique_ptr<Engine>* engine);
  static Status load_file(const std::string& path, const Options& options, std::unique_ptr<Engine>* engine);

  const Model& model() const { return plans_->model(); }
  const Options& options() const { return options_; }

  // Makes ready for a size, so that the first run pays only for the experts it is the first to choose.
  Status plan(int batch, int height, int width);
  Status run(const Images& images, const Results& results, const Poll& poll = {});
  // A session of the caller's own, beside those the engine keeps for its calls. It may outlive the engine.
  Status open(std::unique_ptr<Session>* session) const;
  // Of the buffers of every session that the engine keeps and that is not running.
  std::vector<std::size_t> session_bytes();
  // The kernel of every binary layer, for the size last run or, before, the file's own.
  Status kernels(std::vector<std::string>* names) const;

 private:
  Engine(std::shared_ptr<const Model> model, const Options& options);
  template <class Work>
  Status with_session(Work&& work);

  const Options options_;
  const std::shared_ptr<Plans> plans_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

}  // namespace ebnet
