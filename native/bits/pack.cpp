#include "bits/pack.h"

namespace ebnet {

void pack_signs(const float* values, std::size_t count, std::uint64_t* words) {
  for (std::size_t base = 0; base < count; base += 64) {
    const std::size_t lanes = count - base < 64 ? count - base : 64;
    std::uint64_t word = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      word |= static_cast<std::uint64_t>(values[base + lane] >= 0.0f) << lane;
    }
    words[base / 64] = word;
  }
}

}  // namespace ebnet
