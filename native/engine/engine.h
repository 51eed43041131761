// The engine: a model, its threads and the plan of the size it last ran. All public functions may be called from
// several threads; calls on one engine take turns.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/executor.h"
#include "engine/kernel_choice.h"
#include "engine/limits.h"
#include "engine/model.h"

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

// How a file is to be run.
struct Options {
  int threads = 1;                       // of one call, the caller's included
  StreamType stream = StreamType::fp32;  // of the residual stream
};

class Engine {
 public:
  // The engine keeps the source, see read_model.
  static Status load(const std::shared_ptr<const Source>& source, const Options& options,
                     std::unique_ptr<Engine>* engine, const Limits& limits = {});
  static Status load_file(const std::string& path, const Options& options, std::unique_ptr<Engine>* engine);

  const Model& model() const { return model_; }
  const Options& options() const { return options_; }

  // Makes ready for a size, so that the first run pays only for the experts it is the first to choose.
  Status plan(int batch, int height, int width);
  // logits: [batch][classes]. `experts`, where given: [binary layers][batch].
  Status run(const Images& images, float* logits, std::int64_t* experts = nullptr);
  // As run, and the value of every op, one after another, each [batch][pixel][channel].
  Status trace(const Images& images, float* logits, std::int64_t* experts, std::vector<std::vector<float>>* values);
  // As run, and each op's time.
  Status profile(const Images& images, float* logits, std::vector<OpProfile>* ops);

 private:
  Engine(Model model, const Options& options, const Limits& limits)
      : limits_(limits),
        options_(options),
        model_(std::move(model)),
        choice_(model_.isa),
        pool_(options.threads) {}
  // Images under way at once.
  int slots_for(const Plan& plan, int batch) const;
  // All with the lock held. True where another kernel than before was chosen.
  bool choose_kernels(const Plan& plan);
  void prepare(int batch, int height, int width);
  void run_recorded(const Images& images, float* logits, const Record& record);

  Limits limits_;
  Options options_;
  Model model_;
  KernelChoice choice_;
  ThreadPool pool_;
  std::mutex mutex_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace ebnet
