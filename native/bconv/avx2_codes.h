// Expansion of bits for the AVX2 kernel's lookups: activations to table offsets, weights to one nibble a byte.
#pragma once
#include <immintrin.h>

#include "bconv/avx2_layout.h"

namespace ebnet::avx2 {
namespace {

inline constexpr int kPad = 16;          // the nibble value of the zero padding
inline constexpr int kRows = kPad + 1;   // values of a nibble
inline constexpr int kRowBytes = 16;     // one table row: a byte for each value of the weight nibble

// Code of a pair of pixels with activation nibbles a, b: the byte offset of their table row, (17 a + b) * 16.

// 16 nibbles of a word as bytes, in channel order.
inline __m128i spread_nibbles(const std::uint64_t* word) {
  const __m128i mask = _mm_set1_epi8(0x0f);
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(word));
  return _mm_unpacklo_epi8(_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
}

inline __m256i first_of_pair(__m256i nibbles) {
  return _mm256_mullo_epi16(nibbles, _mm256_set1_epi16(kRows * kRowBytes));
}

inline __m256i second_of_pair(__m256i nibbles) { return _mm256_slli_epi16(nibbles, 4); }

// The input row a line of codes is made of: pixel x is at words + x * pixel_words; x outside [0, width) is padding.
struct InputLine {
  const std::uint64_t* words;
  std::size_t pixel_words;
  int width;  // 0 where the whole row is padding
};

inline __m256i nibbles_at(const InputLine& line, int x, int word) {
  if (x < 0 || x >= line.width) return _mm256_set1_epi16(kPad);
  return _mm256_cvtepu8_epi16(spread_nibbles(line.words + static_cast<std::size_t>(x) * line.pixel_words + word));
}

inline void store_codes(std::uint16_t* codes, __m256i first, __m256i second) {
  const __m256i sums = _mm256_add_epi16(first_of_pair(first), second_of_pair(second));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), sums);
}

// Codes of one word of a line whose positions are neighbours: each pixel is the second of one pair and, kStride
// positions later, the first of another, so it is spread only once.
template <int kStride>
inline void expand_word(const InputLine& line, int word, int positions, int pad, std::size_t pitch,
                        std::uint16_t* codes) {
  __m256i window[kStride];
  for (int i = 0; i < kStride; ++i) window[i] = nibbles_at(line, i - pad, word);
  const auto step = [&](__m256i second) {
    store_codes(codes, window[0], second);
    codes += pitch;
    for (int i = 0; i + 1 < kStride; ++i) window[i] = window[i + 1];
    window[kStride - 1] = second;
  };
  const __m256i padding = _mm256_set1_epi16(kPad);
  const int last = positions + kStride - pad;  // pixels kStride - pad ... last - 1 come in, padding on both sides
  int x = kStride - pad;
  for (; x < last && x < 0; ++x) step(padding);
  const std::uint64_t* words = line.words + static_cast<std::size_t>(x > 0 ? x : 0) * line.pixel_words + word;
  for (; x < last && x < line.width; ++x, words += line.pixel_words) step(_mm256_cvtepu8_epi16(spread_nibbles(words)));
  for (; x < last; ++x) step(padding);
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

// Weights of `blocks` blocks as [triple][block][3][32 lanes].
inline void expand_weights(const std::uint8_t* packed, const Layout& layout, int blocks, std::uint8_t* weights) {
  const int step = 3 * blocks * kLanes;  // from triple to triple
  const __m256i mask = _mm256_set1_epi8(0x0f);
  const auto store_nibble = [mask](std::uint8_t* to, __m256i bytes) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_and_si256(bytes, mask));
  };
  for (int b = 0; b < blocks; ++b, packed += layout.packed_block_bytes) {
    const std::uint8_t* in = packed;
    std::uint8_t* out = weights + 3 * b * kLanes;
    if (layout.columns) {
      for (int ky = 0; ky < 3; ++ky, out += layout.nibbles * step) {
        for (int kx = 0; kx < 3; ++kx) {
          std::uint8_t* to = out + kx * kLanes;
          for (int n = 0; n < layout.nibbles; n += 2, in += kLanes, to += 2 * step) {
            const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(in));
            store_nibble(to, bytes);
            store_nibble(to + step, _mm256_srli_epi16(bytes, 4));
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
          const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
          const __m256i second = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + kLanes));
          const __m256i third = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 2 * kLanes));
          store_nibble(to, first);
          store_nibble(to + kLanes, _mm256_srli_epi16(first, 4));
          store_nibble(to + 2 * kLanes, second);
          store_nibble(to + step, _mm256_srli_epi16(second, 4));
          store_nibble(to + step + kLanes, third);
          store_nibble(to + step + 2 * kLanes, _mm256_srli_epi16(third, 4));
        }
      }
      for (; n < layout.pitch; ++n) {
        const int nibble = tap * layout.nibbles + n;
        __m256i bytes = _mm256_setzero_si256();
        if (n < layout.nibbles) bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(in + nibble / 2 * kLanes));
        store_nibble(out + n / 3 * step + n % 3 * kLanes, nibble % 2 == 0 ? bytes : _mm256_srli_epi16(bytes, 4));
      }
    }
  }
}

}  // namespace
}  // namespace ebnet::avx2
