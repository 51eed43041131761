// Which levels of the vector kernels a test program can run. Its 16-lane level may be compiled without AVX-512: then it
// is called split, and needs AVX2 only.
#pragma once
#include <string>

#include "base/cpu.h"

namespace ebnet {

inline bool is_split([[maybe_unused]] DenseLevel level) {
#ifdef EBNET_SPLIT_AVX512
  return level == DenseLevel::avx512;
#else
  return false;
#endif
}

inline bool runs_here(DenseLevel level) { return cpu_supports(is_split(level) ? DenseLevel::avx2 : level); }

inline std::string title(DenseLevel level) {
  return std::string(dense_level_name(level)) + (is_split(level) ? " (split)" : "");
}

}  // namespace ebnet
