// The tile instructions: assembly, since intrinsics of older compilers do not say that a tile load reads memory, or in
// the emulated test build plain C++ of the same names.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebnet::amx {

// What LDTILECFG reads: the shape of each of the eight tiles of palette 1.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace ebnet::amx

#ifdef EBNET_EMULATE_AVX512
#include "bconv/amx_emulated_tiles.h"
#else
namespace ebnet::amx {
namespace {

inline void configure_tiles(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }

inline void release_tiles() { asm volatile("tilerelease"); }

template <int kTile>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

template <int kTile>
inline void load_tile(const void* from, std::size_t row_stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_stride), "i"(kTile) : "memory");
}

template <int kTile>
inline void store_tile(void* to, std::size_t row_stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_stride), "i"(kTile) : "memory");
}

// sum[m][n] += products of a[m][4 k + i] and b[k][4 n + i], signed bytes into 32 bits.
template <int kSum, int kA, int kB>
inline void multiply_tiles() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace ebnet::amx
#endif
