// Compiled for any CPU: only avx512.cpp itself holds AVX-512 instructions.
#include "bconv/avx512_layout.h"

#include "bconv/kernels.h"
#include "bits/canonical.h"

namespace ebnet {
namespace avx512 {
namespace {

bool supports(const ConvShape&) { return true; }

// [group][block of 16 output channels][ky][kx][32-bit word][16 lanes]; lanes past the last channel are 0.
PackedWeights prepare(const std::uint8_t* canonical, const ConvShape& shape) {
  const std::size_t tap_words = static_cast<std::size_t>(words32(shape)) * kLanes;
  const std::size_t block_words = static_cast<std::size_t>(shape.taps()) * tap_words;
  PackedWeights packed;
  packed.data =
      AlignedBytes(static_cast<std::size_t>(shape.groups * blocks(shape)) * block_words * sizeof(std::uint32_t));
  std::uint32_t* words = packed.data.as<std::uint32_t>();
  for (int o = 0; o < shape.out_channels; ++o) {
    const int group = o / shape.out_per_group();
    const int inside = o % shape.out_per_group();
    std::uint32_t* block = words + static_cast<std::size_t>(group * blocks(shape) + inside / kLanes) * block_words;
    for (int tap = 0; tap < shape.taps(); ++tap) {
      std::uint32_t* lane = block + static_cast<std::size_t>(tap) * tap_words + static_cast<std::size_t>(inside % kLanes);
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

std::size_t scratch_bytes(const ConvShape&) { return 0; }

}  // namespace
}  // namespace avx512

const Kernel kAvx512Kernel = {"avx512-popcount",      Isa::avx512, avx512::supports, avx512::prepare,
                              avx512::scratch_bytes, avx512::run};

}  // namespace ebnet
