// Turning [line][place] into [place][line], four by four.
#pragma once
#include "base/lanes.h"

namespace ebnet {
namespace {

typedef float Four __attribute__((vector_size(4 * sizeof(float))));

#if defined(__clang__)
#define EBNET_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int FourPlaces __attribute__((vector_size(4 * sizeof(int))));
#define EBNET_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, FourPlaces{i, j, k, l})
#endif

inline void transpose_four(const float* from, size_t from_line, float* to, size_t to_line) {
  Four in[4], mixed[4];
  for (size_t i = 0; i < 4; ++i) std::memcpy(&in[i], from + i * from_line, sizeof(Four));
  mixed[0] = EBNET_SHUFFLE(in[0], in[1], 0, 4, 1, 5);
  mixed[1] = EBNET_SHUFFLE(in[2], in[3], 0, 4, 1, 5);
  mixed[2] = EBNET_SHUFFLE(in[0], in[1], 2, 6, 3, 7);
  mixed[3] = EBNET_SHUFFLE(in[2], in[3], 2, 6, 3, 7);
  const Four out[4] = {EBNET_SHUFFLE(mixed[0], mixed[1], 0, 1, 4, 5), EBNET_SHUFFLE(mixed[0], mixed[1], 2, 3, 6, 7),
                       EBNET_SHUFFLE(mixed[2], mixed[3], 0, 1, 4, 5), EBNET_SHUFFLE(mixed[2], mixed[3], 2, 3, 6, 7)};
  for (size_t i = 0; i < 4; ++i) std::memcpy(to + i * to_line, &out[i], sizeof(Four));
}
#undef EBNET_SHUFFLE

// to[place * to_line + line] = from[line * from_line + place] for lines x places. Where a side is no multiple of four,
// its last four overlap the ones before; below four it goes one by one.
inline void transpose(const float* from, size_t from_line, int lines, int places, float* to, size_t to_line) {
  if (lines < 4 || places < 4) {
    for (int line = 0; line < lines; ++line) {
      for (int place = 0; place < places; ++place) {
        to[size(place) * to_line + size(line)] = from[size(line) * from_line + size(place)];
      }
    }
    return;
  }
  for (int line = 0; line < lines; line += 4) {
    const size_t l = size(line + 4 <= lines ? line : lines - 4);
    for (int place = 0; place < places; place += 4) {
      const size_t p = size(place + 4 <= places ? place : places - 4);
      transpose_four(from + l * from_line + p, from_line, to + p * to_line + l, to_line);
    }
  }
}

}  // namespace
}  // namespace ebnet
