// Whether this CPU converts halves by itself. Not every compiler's __builtin_cpu_supports knows it.
#pragma once
#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>

namespace ebnet {

inline bool cpu_has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace ebnet
#endif
