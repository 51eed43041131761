// Compiled for any CPU: only avx512.cpp and avx512_carry_save.cpp hold AVX-512 instructions.
#include "bconv/avx512_layout.h"

#include <algorithm>
#include <vector>

#include "bconv/kernels.h"
#include "bits/canonical.h"

namespace ebnet {
namespace avx512 {
namespace {

bool supports_popcount(const ConvShape&) { return true; }
bool supports_carry_save(const ConvShape& shape) { return has_plain_tiles(shape) && Triples(shape).per_row > 0; }

// [group][block of 16 output channels][ky][kx][32-bit word][16 lanes]; lanes past the last channel are 0.
PackedWeights prepare_popcount(const std::uint8_t* canonical, const ConvShape& shape) {
  const std::size_t tap_words = static_cast<std::size_t>(words32(shape)) * kLanes;
  PackedWeights packed;
  packed.data =
      AlignedBytes(static_cast<std::size_t>(shape.groups * blocks(shape)) * block_words(shape) * sizeof(std::uint32_t));
  std::uint32_t* words = packed.data.as<std::uint32_t>();
  for (int o = 0; o < shape.out_channels; ++o) {
    const int group = o / shape.out_per_group();
    const int inside = o % shape.out_per_group();
    std::uint32_t* block =
        words + static_cast<std::size_t>(group * blocks(shape) + inside / kLanes) * block_words(shape);
    for (int tap = 0; tap < shape.taps(); ++tap) {
      std::uint32_t* lane = block + static_cast<std::size_t>(tap) * tap_words + inside % kLanes;
      if (shape.in_per_group() % 8 == 0) {  // whole bytes, in the order a word holds them
        const std::size_t bytes = static_cast<std::size_t>(shape.in_per_group() / 8);
        const std::uint8_t* from = canonical + static_cast<std::size_t>(o) * shape.canonical_bytes_per_channel() +
                                   static_cast<std::size_t>(tap) * bytes;
        for (std::size_t i = 0; i < bytes; ++i) reinterpret_cast<std::uint8_t*>(lane + i / 4 * kLanes)[i % 4] = from[i];
        continue;
      }
      for (int c = 0; c < shape.in_per_group(); ++c) {
        lane[c / 32 * kLanes] |= static_cast<std::uint32_t>(canonical_bit(canonical, shape, o, tap, c)) << (c % 32);
      }
    }
  }
  return packed;
}

// [group][block][ky], then for each triple w0, w1 and w0 xor w1 xor w2, 16 lanes each, then the words of no triple.
// Made of the other kernel's words row by row: of a kernel row both hold as many, there [kx][word].
PackedWeights prepare_carry_save(const std::uint8_t* canonical, const ConvShape& shape) {
  PackedWeights packed = prepare_popcount(canonical, shape);
  const Triples triples(shape);
  const std::size_t column = static_cast<std::size_t>(triples.per_row) * kLanes;
  const std::size_t row_words = static_cast<std::size_t>(shape.kernel_w * words32(shape)) * kLanes;
  std::vector<std::uint32_t> from(row_words);
  const std::size_t rows = packed.data.size() / sizeof(std::uint32_t) / row_words;
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint32_t* const to = packed.data.as<std::uint32_t>() + row * row_words;
    std::copy(to, to + row_words, from.begin());
    for (std::size_t i = 0; i < column; ++i) {  // the words of no triple come last there too
      std::uint32_t* const triple = to + i / kLanes * 3 * kLanes + i % kLanes;
      triple[0] = from[i];
      triple[kLanes] = from[column + i];
      triple[2 * kLanes] = from[i] ^ from[column + i] ^ from[2 * column + i];
    }
  }
  return packed;
}

std::size_t no_scratch(const ConvShape&) { return 0; }

// The sums of three activation words, one for each word of the input.
std::size_t carry_save_scratch(const ConvShape& shape) {
  return static_cast<std::size_t>(shape.in_h) * static_cast<std::size_t>(shape.in_w) *
         static_cast<std::size_t>(shape.words_per_pixel()) * sizeof(std::uint64_t);
}

}  // namespace
}  // namespace avx512

const Kernel kAvx512Kernel = {"avx512-popcount",        Isa::avx512,        avx512::supports_popcount,
                              avx512::prepare_popcount, avx512::no_scratch, avx512::run_popcount};
const Kernel kAvx512CarrySaveKernel = {"avx512-carry-save",        Isa::avx512,
                                       avx512::supports_carry_save, avx512::prepare_carry_save,
                                       avx512::carry_save_scratch,  avx512::run_carry_save};

}  // namespace ebnet
