// Runs a planned program over a few images at a time: op by op, so that a layer's weights serve all of them, and within
// an op the images are taken expert by expert.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "engine/model.h"
#include "engine/plan.h"

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
  // `slots` images are under way at once.
  Executor(Model& model, Plan plan, int slots, ThreadPool& pool);

  const Plan& plan() const { return plan_; }
  int slots() const { return slots_; }

  // Throws InputNotFinite.
  void run(const Images& images, float* logits, const Record& record);

 private:
  void load_images(const Images& images, int first, int count);
  void run_op(std::size_t index, int count);
  void conv(std::size_t index, int count);
  void pool(std::size_t index, int count);
  void concat(std::size_t index, int count);
  void global_pool(std::size_t index, int count);
  void linear_op(std::size_t index, int count);
  void binary(std::size_t index, int count);
  void binarize_input(std::size_t index, int count);
  void choose_expert(std::size_t index, int slot);
  void save(std::size_t index, int first, int count, int batch, const Record& record) const;

  template <class T = float>
  T* at(int slot, std::size_t offset) {
    return reinterpret_cast<T*>(arenas_.data() + static_cast<std::size_t>(slot) * arena_stride_ + offset);
  }
  // Of values in fp32; for others it is but an address.
  float* value(int slot, std::size_t id) { return at(slot, plan_.values[id].offset); }

  // body(slot, row_begin, row_end, thread) over all rows of `count` images, split as the threads need it.
  template <class Body>
  void over_rows(int count, int rows, const int* order, Body&& body);

  Model& model_;
  Plan plan_;
  int slots_;
  ThreadPool& pool_;
  std::size_t arena_stride_;
  AlignedBytes arenas_;
  AlignedBytes scratch_;
  std::vector<int> chosen_;  // per slot, the expert of the op at hand
  std::vector<int> order_;   // slots by expert
};

}  // namespace ebnet
