// Runs a planned program over a few images at a time: op by op, so that a layer's weights serve all of them, and within
// an op the images are taken expert by expert.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "engine/model.h"
#include "engine/plan.h"
#include "engine/watch.h"
#include "engine/workspace.h"

namespace ebnet {

// A batch: either float32 [batch][channels][height][width], normalised, or uint8 [batch][height][width][channels].
struct Images {
  const float* reals = nullptr;
  const std::uint8_t* bytes = nullptr;
  int batch = 0, height = 0, width = 0;
};

// What a run may record besides the logits.
struct Record {
  std::int64_t* experts = nullptr;                    // [binary layers][batch]
  std::vector<std::vector<float>>* values = nullptr;  // per op, the batch's values, pixel by pixel
  double* seconds = nullptr;                          // per op, added to
};

class Executor {
 public:
  // `slots` images are under way at once; the workspace fits them.
  Executor(const Model& model, const Plan& plan, int slots, Workspace& workspace, ThreadPool& pool, Watch& watch)
      : model_(model), plan_(plan), slots_(slots), workspace_(workspace), pool_(pool), watch_(watch) {}

  // Throws InputNotFinite, LogitsNotFinite, FileChanged or Cancelled.
  void run(const Images& images, float* logits, const Record& record);

 private:
  void load_images(const Images& images, int first, int count);
  void run_op(std::size_t index, int count);
  void conv(std::size_t index, int count);
  void pool(std::size_t index, int count);
  void concat(std::size_t index, int count);
  void sum(std::size_t index, int count);
  void global_pool(std::size_t index, int count);
  void linear_op(std::size_t index, int count);
  void int8_op(std::size_t index, int count);
  void load_bytes(const Images& images, int first, int count);
  [[noreturn]] static void fail_not_finite(int first, int count);
  void binary(std::size_t index, int count);
  int weights_ahead(std::size_t index, MemoryRange* ranges);
  void binarize_input(std::size_t index, int count);
  void choose_expert(std::size_t index, int slot);
  void save(std::size_t index, int first, int count, int batch, const Record& record);
  void save_logits(int first, int count, float* logits);

  template <class T = float>
  T* at(int slot, std::size_t offset) {
    return reinterpret_cast<T*>(workspace_.arena(slot) + offset);
  }
  // Of values in fp32; for others it is but an address.
  float* value(int slot, std::size_t id) { return at(slot, plan_.values[id].offset); }

  // body(slot, row_begin, row_end, thread) over all rows of `count` images, split as the threads need it and so that no
  // piece is much work. `work` is an image's.
  template <class Body>
  void over_rows(int count, int rows, double work, const int* order, Body&& body);

  const Model& model_;
  const Plan& plan_;
  const int slots_;
  Workspace& workspace_;
  ThreadPool& pool_;
  Watch& watch_;
};

template <class Body>
void Executor::over_rows(int count, int rows, double work, const int* order, Body&& body) {
  // Whole images where there are enough of them to keep the threads busy, else pieces of an image. More pieces than
  // threads even out their speeds, but every piece costs a binary convolution an expansion of its weights.
  constexpr int kFewRows = 16;
  constexpr double kMuchWork = 1 << 26;  // done in a tenth of a second by plain loops
  const int threads = pool_.threads();
  int pieces = threads == 1 || count >= 2 * threads ? 1 : std::min(rows, rows < kFewRows ? threads : 2 * threads);
  if (work > kMuchWork * pieces) pieces = std::min(rows, static_cast<int>(std::min(work / kMuchWork, 1e6)) + 1);
  pool_.loop(count * pieces, [&](int item, int thread) {
    if (watch_.stopped(thread)) return;
    const int slot = order == nullptr ? item / pieces : order[item / pieces];
    const int piece = item % pieces;
    const int begin = static_cast<int>(static_cast<std::int64_t>(rows) * piece / pieces);
    const int end = static_cast<int>(static_cast<std::int64_t>(rows) * (piece + 1) / pieces);
    body(slot, begin, end, thread);
  });
}

}  // namespace ebnet
