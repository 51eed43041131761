#include "base/amx_cpu.h"

#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace ebnet::amx {
namespace {

constexpr unsigned kTileBit = 1u << 24, kInt8Bit = 1u << 25;  // CPUID leaf 7, EDX
constexpr std::uint64_t kTileState = 3u << 17;                // XCR0: tile configuration and tile data
constexpr long kRequestPermission = 0x1023;                   // arch_prctl's ARCH_REQ_XCOMP_PERM
constexpr long kTileData = 18;                                // the state it is asked for

// The leaf that describes the tiles (0x1D) is not read: some hypervisors hide it, and palette 1 never changes.
bool cpu_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTileBit) != 0 && (d & kInt8Bit) != 0;
}

bool system_keeps_tiles() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

}  // namespace

bool permitted() {
  static const bool granted =
      cpu_has_tiles() && system_keeps_tiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

}  // namespace ebnet::amx
#else
namespace ebnet::amx {

bool permitted() { return false; }

}  // namespace ebnet::amx
#endif
