// Offsets for buffers with lifetimes: first fit, largest first.
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/aligned.h"

namespace ebnet {

// Bytes in whole cache lines.
inline std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Arena {
 public:
  // A buffer needed from step `first` to step `last`, both included. Returns its index.
  std::size_t add(std::size_t bytes, int first, int last) {
    buffers_.push_back({whole_lines(bytes), first, last, 0});
    return buffers_.size() - 1;
  }

  // Places every buffer; returns the bytes of the whole.
  std::size_t place() {
    std::vector<std::size_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
    std::vector<const Buffer*> placed;  // by offset
    std::size_t total = 0;
    for (const std::size_t index : order) {
      Buffer& buffer = buffers_[index];
      std::size_t at = 0;
      for (const Buffer* other : placed) {
        const bool together = other->first <= buffer.last && buffer.first <= other->last;
        if (!together || other->offset + other->bytes <= at) continue;
        if (at + buffer.bytes <= other->offset) break;
        at = other->offset + other->bytes;
      }
      buffer.offset = at;
      total = std::max(total, at + buffer.bytes);
      placed.insert(std::upper_bound(placed.begin(), placed.end(), &buffer,
                                     [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; }),
                    &buffer);
    }
    return total;
  }

  std::size_t offset(std::size_t index) const { return buffers_[index].offset; }

 private:
  struct Buffer {
    std::size_t bytes;
    int first, last;
    std::size_t offset;
  };
  std::vector<Buffer> buffers_;
};

}  // namespace ebnet
