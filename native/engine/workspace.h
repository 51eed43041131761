// The memory of one run at a time: images' arenas, threads' scratch. It grows to what the largest plan needs and is
// then used again for every size.
#pragma once
#include <vector>

#include "base/aligned.h"
#include "engine/arena.h"
#include "engine/plan.h"

namespace ebnet {

class Workspace {
 public:
  void fit(const Plan& plan, int slots, int threads) {
    arena_stride_ = whole_lines(plan.arena_bytes);
    scratch_stride_ = plan.scratch_bytes;
    grow(arenas_, arena_stride_ * static_cast<std::size_t>(slots) + kAlignment);
    grow(scratch_, scratch_stride_ * static_cast<std::size_t>(threads) + kAlignment);
    chosen.resize(static_cast<std::size_t>(slots));
    order.resize(static_cast<std::size_t>(slots));
    weights.resize(static_cast<std::size_t>(slots));
    last_chosen.resize(plan.ops.size());
  }

  std::uint8_t* arena(int slot) { return arenas_.data() + static_cast<std::size_t>(slot) * arena_stride_; }
  std::uint8_t* scratch(int thread) { return scratch_.data() + static_cast<std::size_t>(thread) * scratch_stride_; }
  std::size_t bytes() const { return arenas_.size() + scratch_.size(); }

  std::vector<int> chosen;                    // per slot, the expert of the op at hand
  std::vector<int> order;                     // slots by expert
  std::vector<const PackedWeights*> weights;  // per slot, of that expert
  std::vector<int> last_chosen;               // per op, for the last image

 private:
  static void grow(AlignedBytes& bytes, std::size_t size) {
    if (bytes.size() >= size) return;
    bytes = AlignedBytes();  // first, so that both are never there together
    bytes = AlignedBytes(size);
  }

  std::size_t arena_stride_ = 0, scratch_stride_ = 0;
  AlignedBytes arenas_, scratch_;
};

}  // namespace ebnet
