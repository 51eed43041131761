// Turning [line][place] into [place][line], in squares of vectors or of four.
#pragma once
#include <utility>

#include "base/lanes.h"

namespace ebnet {
namespace {

typedef float Four __attribute__((vector_size(4 * sizeof(float))));

// Lanes of a, then of b, by their numbers.
template <int... kPlaces, typename Lanes>
inline Lanes shuffled(Lanes a, Lanes b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, kPlaces...);
#else
  typedef int Places __attribute__((vector_size(sizeof(Lanes))));
  return __builtin_shuffle(a, b, Places{kPlaces...});
#endif
}

// Lines [place][line], one behind the other.
struct EvenLines {
  float* to;
  size_t apart;
  float* operator()(int place) const { return to + size(place) * apart; }
};

// line_of(place) says where the line of a place begins.
template <typename LineOf>
inline void transpose_four(const float* from, size_t from_line, int first, size_t shift, LineOf line_of) {
  Four in[4], mixed[4];
  for (size_t i = 0; i < 4; ++i) std::memcpy(&in[i], from + i * from_line, sizeof(Four));
  mixed[0] = shuffled<0, 4, 1, 5>(in[0], in[1]);
  mixed[1] = shuffled<0, 4, 1, 5>(in[2], in[3]);
  mixed[2] = shuffled<2, 6, 3, 7>(in[0], in[1]);
  mixed[3] = shuffled<2, 6, 3, 7>(in[2], in[3]);
  const Four out[4] = {shuffled<0, 1, 4, 5>(mixed[0], mixed[1]), shuffled<2, 3, 6, 7>(mixed[0], mixed[1]),
                       shuffled<0, 1, 4, 5>(mixed[2], mixed[3]), shuffled<2, 3, 6, 7>(mixed[2], mixed[3])};
  for (int i = 0; i < 4; ++i) std::memcpy(line_of(first + i) + shift, &out[i], sizeof(Four));
}

// A square of kLanes x kLanes: log2(kLanes) rounds, each swapping the off-diagonal quarters of ever larger squares.
template <int kDistance, int... kLane>
inline void swap_quarters(Vector* lines, std::integer_sequence<int, kLane...>) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & kDistance) continue;
    const Vector a = lines[i], b = lines[i + kDistance];
    lines[i] = shuffled<((kLane & kDistance) != 0 ? kLanes + kLane - kDistance : kLane)...>(a, b);
    lines[i + kDistance] = shuffled<((kLane & kDistance) != 0 ? kLanes + kLane : kLane + kDistance)...>(a, b);
  }
}

// Of the square's places the first `places` are written.
template <typename LineOf>
inline void transpose_square(const float* from, size_t from_line, int first, size_t shift, LineOf line_of,
                             int places = kLanes) {
  Vector lines[kLanes];
#pragma GCC unroll 16
  for (size_t i = 0; i < kLanes; ++i) lines[i] = load(from + i * from_line);
  constexpr std::make_integer_sequence<int, kLanes> all;
  swap_quarters<1>(lines, all);
  swap_quarters<2>(lines, all);
  if constexpr (kLanes > 4) swap_quarters<4>(lines, all);
  if constexpr (kLanes > 8) swap_quarters<8>(lines, all);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i < places) store(line_of(first + i) + shift, lines[i]);
  }
}

// line_of(place)[line] = from[line * from_line + place] for lines x places, by squares of `kSide`. Where a side is no
// multiple of it, its last square overlaps the one before.
template <int kSide, typename LineOf>
inline void transpose_by(const float* from, size_t from_line, int lines, int places, LineOf line_of) {
  for (int line = 0; line < lines; line += kSide) {
    const size_t l = size(line + kSide <= lines ? line : lines - kSide);
    for (int place = 0; place < places; place += kSide) {
      const int p = place + kSide <= places ? place : places - kSide;
      if constexpr (kSide == 4) {
        transpose_four(from + l * from_line + p, from_line, p, l, line_of);
      } else {
        transpose_square(from + l * from_line + p, from_line, p, l, line_of);
      }
    }
  }
}

// Numbers of a and b in turn: those of their first halves, or of their second ones.
template <bool kSecond, int... kLane>
inline Vector in_turn(Vector a, Vector b, std::integer_sequence<int, kLane...>) {
  return shuffled<(kLane % 2 * kLanes + kLane / 2 + (kSecond ? kLanes / 2 : 0))...>(a, b);
}

// The even numbers of a and then b, or the odd ones.
template <bool kOdd, int... kLane>
inline Vector every_second(Vector a, Vector b, std::integer_sequence<int, kLane...>) {
  return shuffled<(2 * kLane + (kOdd ? 1 : 0))...>(a, b);
}

// Few lines whose places follow each other, to[place * kLines + line]: log2(kLines) rounds, each taking the numbers of
// two vectors in turn, those of the first half of the lines with those of the second. The last vectors of places overlap
// the ones before.
template <int kLines>
inline void interleave(const float* from, size_t from_line, int places, float* to) {
  constexpr std::make_integer_sequence<int, kLanes> all;
  for (int place = 0; place < places; place += kLanes) {
    const size_t p = size(place + kLanes <= places ? place : places - kLanes);
    Vector some[kLines], mixed[kLines];
#pragma GCC unroll 8
    for (size_t i = 0; i < kLines; ++i) some[i] = load(from + i * from_line + p);
#pragma GCC unroll 8
    for (int round = 1; round < kLines; round *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < kLines / 2; ++i) {
        mixed[2 * i] = in_turn<false>(some[i], some[i + kLines / 2], all);
        mixed[2 * i + 1] = in_turn<true>(some[i], some[i + kLines / 2], all);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kLines; ++i) some[i] = mixed[i];
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < kLines; ++i) store(to + p * kLines + i * kLanes, some[i]);
  }
}

// And back: to[place * to_line + line] = from[line * kPlaces + place].
template <int kPlaces>
inline void deal(const float* from, int lines, float* to, size_t to_line) {
  constexpr std::make_integer_sequence<int, kLanes> all;
  for (int line = 0; line < lines; line += kLanes) {
    const size_t l = size(line + kLanes <= lines ? line : lines - kLanes);
    Vector some[kPlaces], mixed[kPlaces];
#pragma GCC unroll 8
    for (size_t i = 0; i < kPlaces; ++i) some[i] = load(from + l * kPlaces + i * kLanes);
#pragma GCC unroll 8
    for (int round = 1; round < kPlaces; round *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < kPlaces / 2; ++i) {
        mixed[i] = every_second<false>(some[2 * i], some[2 * i + 1], all);
        mixed[i + kPlaces / 2] = every_second<true>(some[2 * i], some[2 * i + 1], all);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kPlaces; ++i) some[i] = mixed[i];
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < kPlaces; ++i) store(to + i * to_line + l, some[i]);
  }
}

// The same in the largest squares that fit; below four it goes one by one.
template <typename LineOf>
inline void transpose_to(const float* from, size_t from_line, int lines, int places, LineOf line_of) {
  if (lines >= kLanes && places >= kLanes) return transpose_by<kLanes>(from, from_line, lines, places, line_of);
  if (lines >= 4 && places >= 4) return transpose_by<4>(from, from_line, lines, places, line_of);
  for (int line = 0; line < lines; ++line) {
    for (int place = 0; place < places; ++place) line_of(place)[line] = from[size(line) * from_line + size(place)];
  }
}

// to[place * to_line + line] = from[line * from_line + place].
inline void transpose(const float* from, size_t from_line, int lines, int places, float* to, size_t to_line) {
  if (places == 1 && from_line == 1) {
    std::memcpy(to, from, size(lines) * sizeof(float));
    return;
  }
  constexpr int kHalf = kLanes / 2, kQuarter = kLanes / 4;  // of a vector: the channels of a narrow group
  if (places >= kLanes && to_line == size(lines)) {
    if (lines == kHalf) return interleave<kHalf>(from, from_line, places, to);
    if (lines == kQuarter) return interleave<kQuarter>(from, from_line, places, to);
  }
  if (lines >= kLanes && from_line == size(places)) {
    if (places == kHalf) return deal<kHalf>(from, lines, to, to_line);
    if (places == kQuarter) return deal<kQuarter>(from, lines, to, to_line);
  }
  transpose_to(from, from_line, lines, places, EvenLines{to, to_line});
}

// Three vectors' numbers dealt out to three, or three vectors' numbers taken in turn: two shuffles for each result.
template <int kFirst, int... kLane>
inline Vector every_third(const Vector* from, std::integer_sequence<int, kLane...>) {
  constexpr int kTwo = 2 * kLanes;
  const Vector some = shuffled<(3 * kLane + kFirst < kTwo ? 3 * kLane + kFirst : 0)...>(from[0], from[1]);
  return shuffled<(3 * kLane + kFirst < kTwo ? kLane : 3 * kLane + kFirst - kLanes)...>(some, from[2]);
}

template <int kFirst, int... kLane>
inline Vector three_in_turn(Vector a, Vector b, Vector c, std::integer_sequence<int, kLane...>) {
  const Vector some = shuffled<((kFirst + kLane) % 3 * kLanes + (kFirst + kLane) / 3) % (2 * kLanes)...>(a, b);
  return shuffled<((kFirst + kLane) % 3 == 2 ? kLanes + (kFirst + kLane) / 3 : kLane)...>(some, c);
}

inline void deal_three(const Vector* from, Vector* to, size_t apart) {
  constexpr std::make_integer_sequence<int, kLanes> all;
  to[0] = every_third<0>(from, all);
  to[apart] = every_third<1>(from, all);
  to[2 * apart] = every_third<2>(from, all);
}

inline void take_three(const Vector* from, size_t apart, Vector* to) {
  constexpr std::make_integer_sequence<int, kLanes> all;
  const Vector a = from[0], b = from[apart], c = from[2 * apart];
  to[0] = three_in_turn<0>(a, b, c, all);
  to[1] = three_in_turn<kLanes>(a, b, c, all);
  to[2] = three_in_turn<2 * kLanes>(a, b, c, all);
}

// Lines of nine, the taps of a 3x3 kernel, that follow each other: line_of(place)[line] = from[9 * line + place]. Number
// 9 l + 3 a + b is dealt out by b, where it is number 3 l + a, and then by a.
template <typename LineOf>
void transpose_nines(const float* from, int lines, LineOf line_of) {
  float* to[9];
  for (int i = 0; i < 9; ++i) to[i] = line_of(i);
  int line = 0;
  for (; line + kLanes <= lines; line += kLanes, from += 9 * kLanes) {
    Vector numbers[9], dealt[9], place[9];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) numbers[i] = load(from + i * kLanes);
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) deal_three(numbers + 3 * i, dealt + i, 3);
#pragma GCC unroll 3
    for (int b = 0; b < 3; ++b) deal_three(dealt + 3 * b, place + b, 3);
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) store(to[i] + line, place[i]);
  }
  if (line < lines) transpose_to(from, 9, lines - line, 9, [&](int place) { return to[place] + line; });
}

// And back.
template <typename LineOf>
void transpose_to_nines(LineOf line_of, int lines, float* to) {
  const float* from[9];
  for (int i = 0; i < 9; ++i) from[i] = line_of(i);
  int line = 0;
  for (; line + kLanes <= lines; line += kLanes, to += 9 * kLanes) {
    Vector place[9], taken[9], numbers[9];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) place[i] = load(from[i] + line);
#pragma GCC unroll 3
    for (int b = 0; b < 3; ++b) take_three(place + b, 3, taken + 3 * b);
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) take_three(taken + i, 3, numbers + 3 * i);
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) store(to + i * kLanes, numbers[i]);
  }
  for (; line < lines; ++line, to += 9) {
    for (int i = 0; i < 9; ++i) to[i] = from[i][line];
  }
}

}  // namespace
}  // namespace ebnet
