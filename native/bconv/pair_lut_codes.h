// Expansion of bits for the lookups of pair_lut.h: activations to table offsets, weights to one nibble a byte.
#pragma once
#include "bconv/pair_lut_layout.h"

namespace ebnet::pair_lut {
namespace {

using namespace vectors;

inline constexpr int kPad = 16;          // the nibble value of the zero padding
inline constexpr int kRows = kPad + 1;   // values of a nibble
inline constexpr int kRowBytes = 16;     // one table row: a byte for each value of the weight nibble

// Code of a pair of pixels with activation nibbles a, b: the byte offset of their table row, (17 a + b) * 16.

// The input row a line of codes is made of: pixel x is at words + x * pixel_words; x outside [0, width) is padding.
struct InputLine {
  const std::uint64_t* words;
  std::size_t pixel_words;
  int width;  // 0 where the whole row is padding
};

EBNET_INLINE Sixteen padding() { return kPad - Sixteen{}; }

EBNET_INLINE Sixteen nibbles_at(const InputLine& line, int x, int word) {
  if (x < 0 || x >= line.width) return padding();
  return spread_nibbles(line.words + static_cast<std::size_t>(x) * line.pixel_words + word);
}

EBNET_INLINE void store_codes(std::uint16_t* codes, Sixteen first, Sixteen second) {
  store(codes, first * (kRows * kRowBytes) + second * kRowBytes);
}

// Codes of one word of a line whose positions are neighbours: each pixel is the second of one pair and, kStride
// positions later, the first of another, so it is spread only once.
template <int kStride>
inline void expand_word(const InputLine& line, int word, int positions, int pad, std::size_t pitch,
                        std::uint16_t* codes) {
  Sixteen window[kStride];
  for (int i = 0; i < kStride; ++i) window[i] = nibbles_at(line, i - pad, word);
  const auto step = [&](Sixteen second) {
    store_codes(codes, window[0], second);
    codes += pitch;
    for (int i = 0; i + 1 < kStride; ++i) window[i] = window[i + 1];
    window[kStride - 1] = second;
  };
  const int last = positions + kStride - pad;  // pixels kStride - pad ... last - 1 come in, padding on both sides
  int x = kStride - pad;
  for (; x < last && x < 0; ++x) step(padding());
  const std::uint64_t* words = line.words + static_cast<std::size_t>(x > 0 ? x : 0) * line.pixel_words + word;
  for (; x < last && x < line.width; ++x, words += line.pixel_words) step(spread_nibbles(words));
  for (; x < last; ++x) step(padding());
}

// Codes of one line: [positions][pitch]. Position q pairs the input pixels x = q * position_step - pad and x + stride.
// Stores are 16 codes wide and run into the next position, which is written later; the last one into kCodeSlack.
inline void expand_pixels(const InputLine& line, const Layout& layout, int positions, int pad, int stride,
                          std::uint16_t* codes) {
  const int words = (layout.nibbles + 15) / 16;
  const std::size_t pitch = static_cast<std::size_t>(layout.pitch);
  if (layout.position_step == 1 && stride <= 2 && (words == 1 || layout.pitch % 16 == 0)) {
    for (int word = 0; word < words; ++word) {
      if (stride == 1) {
        expand_word<1>(line, word, positions, pad, pitch, codes + word * 16);
      } else {
        expand_word<2>(line, word, positions, pad, pitch, codes + word * 16);
      }
    }
    return;
  }
  for (int q = 0; q < positions; ++q, codes += pitch) {
    const int x = q * layout.position_step - pad;
    for (int word = 0; word < words; ++word) {
      store_codes(codes + word * 16, nibbles_at(line, x, word), nibbles_at(line, x + stride, word));
    }
  }
}

// As expand_pixels; codes past the last nibble become 0, whose row finds nothing that differs from weights that are 0.
inline void expand_line(const InputLine& line, const Layout& layout, int positions, int pad, int stride,
                        std::uint16_t* codes) {
  expand_pixels(line, layout, positions, pad, stride, codes);
  for (int n = layout.nibbles; n < layout.pitch; ++n) {
    for (int q = 0; q < positions; ++q) codes[q * layout.pitch + n] = 0;
  }
}

// Weights of `blocks` blocks as [triple][block][3][lane].
inline void expand_weights(const std::uint8_t* packed, const Layout& layout, int blocks, std::uint8_t* weights) {
  const int step = 3 * blocks * kLanes;  // from triple to triple
  const auto store_lower = [](std::uint8_t* to, Bytes pairs) { store(to, pairs & 0x0f); };
  // By words: not every instruction set shifts bytes.
  const auto store_upper = [](std::uint8_t* to, Bytes pairs) {
    store(to, reinterpret_cast<Bytes>(reinterpret_cast<Words>(pairs) >> 4) & 0x0f);
  };
  for (int b = 0; b < blocks; ++b, packed += layout.packed_block_bytes) {
    const std::uint8_t* in = packed;
    std::uint8_t* out = weights + 3 * b * kLanes;
    if (layout.columns) {
      for (int ky = 0; ky < 3; ++ky, out += layout.nibbles * step) {
        for (int kx = 0; kx < 3; ++kx) {
          std::uint8_t* to = out + kx * kLanes;
          for (int n = 0; n < layout.nibbles; n += 2, in += kLanes, to += 2 * step) {
            const Bytes pairs = load<Bytes>(in);
            store_lower(to, pairs);
            store_upper(to + step, pairs);
          }
        }
      }
      continue;
    }
    for (int tap = 0; tap < layout.total_nibbles / layout.nibbles; ++tap, out += layout.pitch / 3 * step) {
      int n = 0;
      std::uint8_t* to = out;
      if (layout.nibbles % 2 == 0) {  // three bytes are the six nibbles of two triples
        const std::uint8_t* from = in + tap * layout.nibbles / 2 * kLanes;
        for (; n + 6 <= layout.nibbles; n += 6, from += 3 * kLanes, to += 2 * step) {
          const Bytes first = load<Bytes>(from);
          const Bytes second = load<Bytes>(from + kLanes);
          const Bytes third = load<Bytes>(from + 2 * kLanes);
          store_lower(to, first);
          store_upper(to + kLanes, first);
          store_lower(to + 2 * kLanes, second);
          store_upper(to + step, second);
          store_lower(to + step + kLanes, third);
          store_upper(to + step + 2 * kLanes, third);
        }
      }
      for (; n < layout.pitch; ++n) {
        const int nibble = tap * layout.nibbles + n;
        std::uint8_t* const at = out + n / 3 * step + n % 3 * kLanes;
        const Bytes pairs = n < layout.nibbles ? load<Bytes>(in + nibble / 2 * kLanes) : Bytes{};
        nibble % 2 == 0 ? store_lower(at, pairs) : store_upper(at, pairs);
      }
    }
  }
}

}  // namespace
}  // namespace ebnet::pair_lut
