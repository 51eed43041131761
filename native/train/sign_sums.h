// Where a tile's positions read and write, and the sums of signs that are asked of it (sign_tiles.h).
#pragma once
#include <cstddef>

namespace ebnet {

struct Place {
  int from, to;
  int row, column;  // in the map that is read
};

struct Run {
  std::size_t place;  // from the position's
  int length;
  const float* weights;  // [number][vectors]
};

struct SignTask {
  const Run* runs;
  int count;
  const float* from;
  int planes;               // words of 32 signs that a pixel has, each in a plane of its own
  std::size_t plane;        // from plane to plane; behind the last one is the mask
  std::size_t weights;      // from a plane's weights to the next one's
  const Place* places;
  const int *down, *right;  // signs that a position sees: down[its row] * right[its column]
  float* to;
};

// For `rows` positions and two vectors of output channels, or one.
using SignSums = void (*)(int rows, bool two, const SignTask& t);

#ifdef EBNET_X86_64
void sign_sums_vpopcnt(int rows, bool two, const SignTask& t);  // 16 lanes
#endif

}  // namespace ebnet
