// Compiled for any CPU: only avx2.cpp itself holds AVX2 instructions.
#include "bconv/pair_lut_layout.h"

#include <algorithm>

#include "bconv/kernels.h"
#include "bits/canonical.h"

namespace ebnet {
namespace pair_lut {
namespace {

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Layout::Layout(const ConvShape& s, Machine machine, int most_blocks) {
  flat = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0;
  nibbles = (s.in_per_group() + 3) / 4;
  total_nibbles = s.taps() * nibbles;
  columns = s.kernel_h == 3 && s.kernel_w == 3 && s.dilation_w == 1 && s.stride_w <= 2 &&
            (nibbles == 4 || nibbles == 8 || nibbles == 16);
  pitch = columns ? nibbles : (nibbles + 2) / 3 * 3;
  triples = s.taps() * pitch / 3;
  blocks = (s.out_per_group() + machine.lanes - 1) / machine.lanes;
  // Where lookups are columns, two pairs at least, which share rows of the table. Weights should fill no more than half
  // of L1.
  const bool four = blocks >= 4 && 3 * triples * 4 * machine.lanes <= kWeightsOfFour;
  tile_blocks = std::min({most_blocks, columns ? machine.tile / 2 : 4, blocks == 1 ? 1 : four ? 4 : 2});
  const std::size_t position_bytes = static_cast<std::size_t>(pitch) * sizeof(std::uint16_t);
  if (flat) {
    const int budget = static_cast<int>(kCodeBudget / position_bytes) * 2;  // a position codes two pixels
    line_pixels = std::min(s.out_h() * s.out_w(), std::max(budget / kTilePixels, 1) * kTilePixels);
  } else {
    line_pixels = s.out_w();
  }
  const int pairs = (line_pixels + 1) / 2;
  if (s.kernel_w == 1) {  // only the first pixels of pairs start a tap
    position_step = 2 * s.stride_w;
    pair_step = 1;
    positions = pairs;
  } else {
    position_step = 1;
    pair_step = 2 * s.stride_w;
    positions = (pairs - 1) * pair_step + (s.kernel_w - 1) * s.dilation_w + 1;
  }
  line_rows = 1;
  code_rows = (s.kernel_h - 1) * s.dilation_h + 1;
  if (!flat) {
    const std::size_t row_bytes = static_cast<std::size_t>(positions) * position_bytes;
    const int budget_rows = static_cast<int>(kCodeBudget / row_bytes);
    line_rows = std::clamp((budget_rows - code_rows) / s.stride_h + 1, std::min(4, s.out_h()), s.out_h());
    code_rows += (line_rows - 1) * s.stride_h;
  }
  packed_block_bytes = static_cast<std::size_t>((total_nibbles + 1) / 2 * machine.lanes);
  codes_bytes = round_up((static_cast<std::size_t>(code_rows) * static_cast<std::size_t>(positions) *
                              static_cast<std::size_t>(pitch) +
                          kCodeSlack) *
                             sizeof(std::uint16_t),
                         kAlignment);
  weights_bytes = static_cast<std::size_t>(3 * triples * tile_blocks * machine.lanes);
}

namespace {

// [group][block of output channels][nibble pair][lane]: byte = nibble 2i | nibble 2i + 1 << 4, nibbles counted over
// [ky][kx][in / 4]. Lanes are in the order of lane_of; those past the group's last channel and bits past the last input
// channel are 0.
PackedWeights prepare_lanes(const std::uint8_t* canonical, const ConvShape& shape, Machine machine) {
  const Layout layout(shape, machine, 1);  // how blocks are packed does not depend on how many are computed together
  const auto lanes = static_cast<std::size_t>(machine.lanes);
  PackedWeights packed;
  packed.data = AlignedBytes(static_cast<std::size_t>(shape.groups * layout.blocks) * layout.packed_block_bytes);
  for (int o = 0; o < shape.out_channels; ++o) {
    const int group = o / shape.out_per_group();
    const int inside = o % shape.out_per_group();
    std::uint8_t* block = packed.data.data() + static_cast<std::size_t>(group * layout.blocks + inside / machine.lanes) *
                                                   layout.packed_block_bytes;
    const auto lane = static_cast<std::size_t>(lane_of(inside % machine.lanes, machine.lanes));
    if (shape.in_per_group() % 8 == 0) {  // a canonical byte is a nibble pair already: only a transpose is left
      const std::size_t bytes = shape.canonical_bytes_per_channel();
      const std::uint8_t* from = canonical + static_cast<std::size_t>(o) * bytes;
      for (std::size_t i = 0; i < bytes; ++i) block[i * lanes + lane] = from[i];
      continue;
    }
    for (int tap = 0; tap < shape.taps(); ++tap) {
      for (int c = 0; c < shape.in_per_group(); ++c) {
        const int nibble = tap * layout.nibbles + c / 4;
        const unsigned bit = canonical_bit(canonical, shape, o, tap, c) << (c % 4 + 4 * (nibble % 2));
        block[static_cast<std::size_t>(nibble / 2) * lanes + lane] |= static_cast<std::uint8_t>(bit);
      }
    }
  }
  return packed;
}

// The kernel of one instruction set that computes up to kMostBlocks blocks together.
template <const Machine& kMachine, void (*kRun)(const ConvTask&, int), int kMostBlocks>
struct Of {
  // Dot products are kept in 16 bits. A kernel of several blocks is one of its own only where there are as many.
  static bool supports(const ConvShape& shape) {
    const bool fits = static_cast<std::int64_t>(shape.taps()) * ((shape.in_per_group() + 3) / 4) * 4 <= 32767;
    return fits && (kMostBlocks == 1 || Layout(shape, kMachine, kMostBlocks).tile_blocks == kMostBlocks);
  }

  static PackedWeights prepare(const std::uint8_t* canonical, const ConvShape& shape) {
    return prepare_lanes(canonical, shape, kMachine);
  }

  static std::size_t scratch_bytes(const ConvShape& shape) {
    const Layout layout(shape, kMachine, kMostBlocks);
    return layout.codes_bytes + layout.weights_bytes;
  }

  static constexpr Kernel kernel(const char* name, Isa isa) {
    return {name, isa, supports, prepare, scratch_bytes, [](const ConvTask& task) { kRun(task, kMostBlocks); }};
  }
};

}  // namespace
}  // namespace pair_lut

// The three kernels of an instruction set: with at most 1, 2 or 4 blocks of output channels side by side.
#define EBNET_PAIR_LUT(Set, set, run)                                                                          \
  const Kernel k##Set##OneBlock = pair_lut::Of<pair_lut::k##Set, run, 1>::kernel(#set "-pair-lut-1", Isa::set);  \
  const Kernel k##Set##TwoBlocks = pair_lut::Of<pair_lut::k##Set, run, 2>::kernel(#set "-pair-lut-2", Isa::set); \
  const Kernel k##Set##FourBlocks = pair_lut::Of<pair_lut::k##Set, run, 4>::kernel(#set "-pair-lut-4", Isa::set);

#if defined(EBNET_X86_64)
EBNET_PAIR_LUT(Avx2, avx2, pair_lut::run_avx2)
#elif defined(EBNET_ARM64)
EBNET_PAIR_LUT(Neon, neon, pair_lut::run_neon)
#elif defined(EBNET_SIMD128)
EBNET_PAIR_LUT(Simd128, simd128, pair_lut::run_simd128)
#endif

}  // namespace ebnet
