// Tile registers in plain C++, for CPUs without AMX. What the processor answers with a fault ends the program with a
// message: a configuration that palette 1 does not allow, tiles used without one, tiles whose shapes do not fit
// together.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ebnet::amx {
namespace {

constexpr int kTiles = 8;       // of palette 1
constexpr int kMostRows = 16;
constexpr int kMostBytes = 64;  // in a row

struct EmulatedTiles {
  bool configured = false;
  int rows[kTiles] = {};
  int row_bytes[kTiles] = {};
  std::int8_t data[kTiles][kMostRows][kMostBytes] = {};
};

thread_local EmulatedTiles tiles;

inline void require_legal(bool legal, const char* broken) {
  if (legal) return;
  std::fprintf(stderr, "emulated AMX would fault: %s\n", broken);
  std::abort();
}

inline void configure_tiles(const TileConfig& config) {
  require_legal(config.palette == 1, "palette other than 1");
  require_legal(config.start_row == 0, "a start row");
  for (const std::uint8_t byte : config.reserved) require_legal(byte == 0, "a reserved byte that is not 0");
  tiles = EmulatedTiles{};
  tiles.configured = true;
  for (int i = 0; i < 16; ++i) {
    const int rows = config.rows[i], row_bytes = config.row_bytes[i];
    require_legal(i < kTiles || (rows == 0 && row_bytes == 0), "a shape for a tile that palette 1 has not");
    require_legal(rows <= kMostRows && row_bytes <= kMostBytes, "a tile of more than 16 rows of 64 bytes");
    require_legal((rows == 0) == (row_bytes == 0), "a tile with rows or columns only");
    if (i >= kTiles) continue;
    tiles.rows[i] = rows;
    tiles.row_bytes[i] = row_bytes;
  }
}

inline void release_tiles() { tiles = EmulatedTiles{}; }

template <int kTile>
inline void require_tile() {
  static_assert(kTile >= 0 && kTile < kTiles);
  require_legal(tiles.configured, "tiles are not configured");
  require_legal(tiles.rows[kTile] > 0, "a tile without a shape");
}

template <int kTile>
inline void zero_tile() {
  require_tile<kTile>();
  std::memset(tiles.data[kTile], 0, sizeof tiles.data[kTile]);
}

template <int kTile>
inline void load_tile(const void* from, std::size_t row_stride) {
  zero_tile<kTile>();
  for (int row = 0; row < tiles.rows[kTile]; ++row) {
    const auto* bytes = static_cast<const std::uint8_t*>(from) + static_cast<std::size_t>(row) * row_stride;
    std::memcpy(tiles.data[kTile][row], bytes, static_cast<std::size_t>(tiles.row_bytes[kTile]));
  }
}

template <int kTile>
inline void store_tile(void* to, std::size_t row_stride) {
  require_tile<kTile>();
  for (int row = 0; row < tiles.rows[kTile]; ++row) {
    auto* bytes = static_cast<std::uint8_t*>(to) + static_cast<std::size_t>(row) * row_stride;
    std::memcpy(bytes, tiles.data[kTile][row], static_cast<std::size_t>(tiles.row_bytes[kTile]));
  }
}

template <int kSum, int kA, int kB>
inline void multiply_tiles() {
  static_assert(kSum != kA && kSum != kB && kA != kB, "three different tiles");
  require_tile<kSum>();
  require_tile<kA>();
  require_tile<kB>();
  for (const int tile : {kSum, kA, kB}) require_legal(tiles.row_bytes[tile] % 4 == 0, "columns of odd bytes");
  require_legal(tiles.rows[kA] == tiles.rows[kSum], "other rows in the first factor than in the sum");
  require_legal(tiles.row_bytes[kB] == tiles.row_bytes[kSum], "other columns in the second factor than in the sum");
  require_legal(tiles.row_bytes[kA] == tiles.rows[kB] * 4, "factors that do not fit each other");
  for (int m = 0; m < tiles.rows[kSum]; ++m) {
    std::int32_t sums[kMostBytes / 4];
    std::memcpy(sums, tiles.data[kSum][m], sizeof sums);
    for (int k = 0; k < tiles.rows[kB]; ++k) {
      const std::int8_t* a = tiles.data[kA][m] + 4 * k;
      const std::int8_t* b = tiles.data[kB][k];
      for (int n = 0; n < tiles.row_bytes[kSum] / 4; ++n) {
        for (int i = 0; i < 4; ++i) sums[n] += static_cast<std::int32_t>(a[i]) * b[4 * n + i];
      }
    }
    std::memcpy(tiles.data[kSum][m], sums, sizeof sums);
  }
}

}  // namespace
}  // namespace ebnet::amx
