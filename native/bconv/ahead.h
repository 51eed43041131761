// Weights of later layers, asked for while this one computes: a few lines after each tile, since a CPU that is asked for
// many lines at once computes nothing until most of them have come.
#pragma once
#include "bconv/bconv.h"

namespace ebnet {
namespace {

class Ahead {
 public:
  // All of it within `tiles` calls of some().
  EBNET_INLINE Ahead(const ConvTask& task, int tiles) : range_(task.ahead), last_(task.ahead + task.ahead_count) {
    std::size_t lines = 0;
    for (const MemoryRange* range = range_; range != last_; ++range) lines += range->bytes / kLine + 1;
    lines_ = lines / static_cast<std::size_t>(tiles > 0 ? tiles : 1) + 1;
  }

  EBNET_INLINE void some() {
    for (std::size_t line = 0; line < lines_ && range_ != last_; ++line, at_ += kLine) {
      __builtin_prefetch(range_->data + at_, 0, 2);
      if (at_ + kLine < range_->bytes) continue;
      ++range_;
      at_ = 0 - kLine;
    }
  }

 private:
  static constexpr std::size_t kLine = 64;
  const MemoryRange* range_;
  const MemoryRange* last_;
  std::size_t lines_, at_ = 0;
};

}  // namespace
}  // namespace ebnet
