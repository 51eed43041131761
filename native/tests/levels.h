// Which levels of the vector kernels a test program can run. Its 16-lane level may be compiled without AVX-512: then it
// is called split, and needs AVX2 only.
#pragma once
#include <cstdio>
#include <cstdlib>
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

// The program around the checks of all levels: check(level, cases) on those that run here, as many cases as its first
// argument says; its exit code.
template <typename Check>
int run_levels(int argc, char** argv, int usual, const int& failures, Check check) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : usual;
  for (const DenseLevel level : kDenseLevels) {
    if (!runs_here(level)) {
      std::printf("%s: not run, this CPU lacks it\n", title(level).c_str());
      continue;
    }
    check(level, cases);
    std::printf("%s: ran\n", title(level).c_str());
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}

// For `run_levels`: all these checks in each case.
template <typename... Checks>
auto in_each_case(Checks... checks) {
  return [=](DenseLevel level, int cases) {
    for (int i = 0; i < cases; ++i) (checks(level), ...);
  };
}

}  // namespace ebnet
