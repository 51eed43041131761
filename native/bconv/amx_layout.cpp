// Compiled for any CPU: only amx.cpp itself holds AMX and AVX-512 instructions.
#include "bconv/amx_layout.h"

#include <algorithm>

#include "bconv/kernels.h"
#include "bits/canonical.h"

namespace ebnet {
namespace amx {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::size_t z(int value) { return static_cast<std::size_t>(value); }

}  // namespace

Layout::Layout(const ConvShape& s) {
  run_taps = s.dilation_w == 1 ? s.kernel_w : 1;
  runs = s.taps() / run_taps;
  run_inputs = run_taps * s.in_per_group();
  run_words = divide_up(run_inputs, kQuad);
  tile_words = z(runs) * z(run_words);
  run_steps = divide_up(run_inputs, kTileInputs);
  steps = runs * run_steps;
  output_tiles = divide_up(s.out_per_group(), kTileOutputs);
  pairs = divide_up(output_tiles, 2);
  pair_bytes = z(steps) * 2 * kTileBytes;
  kept = z(pairs) * pair_bytes <= kKeptBudget;

  const int last_tap = (s.kernel_h - 1) * s.dilation_h;
  phases = std::min(s.stride_h, last_tap + 1);
  halo_rows = last_tap / s.stride_h;
  row_positions = std::max(divide_up(s.in_w + s.pad_w, s.stride_w), s.out_w());
  const std::size_t cell = z(s.in_per_group());
  row_bytes = z(row_positions) * z(s.stride_w) * cell;
  const std::size_t budget_rows = (kept ? kNearBudget : kFarBudget) / (z(phases) * row_bytes);
  strip_rows = std::clamp(static_cast<int>(budget_rows) - halo_rows, 1, s.out_h());
  phase_bytes = z(strip_rows + halo_rows) * row_bytes + z(s.pad_w) * cell;

  steps_bytes = whole_lines(z(steps) * sizeof(Step));
  weights_bytes = (kept ? z(pairs) : 1) * pair_bytes;
  // Vectors write past the last input of the strip. The last tile may begin with the last output of the line, and the
  // last step of a run reads past its last input.
  const std::size_t written = z(phases) * phase_bytes + kTileInputs;
  const std::size_t last_run =
      z(phases - 1) * phase_bytes + z(halo_rows) * row_bytes + z((s.kernel_w - 1) * s.dilation_w) * cell;
  const std::size_t line_bytes = z(strip_rows * row_positions + kTileRows) * z(s.stride_w) * cell;
  strip_bytes = whole_lines(std::max(written, last_run + line_bytes + z(run_steps * kTileInputs)));
  strips = s.groups > 1 || strip_rows < s.out_h() ? 2 : 1;
}

namespace {

bool supports(const ConvShape& shape) { return Layout(shape).pair_bytes <= kMostPairBytes; }

// [group][output tile][run][four inputs]: bit 4 * i + k of a word is input k of output channel i of the tile. Channels
// past the group's last and inputs past the run's last are 0.
PackedWeights prepare(const std::uint8_t* canonical, const ConvShape& shape) {
  const Layout layout(shape);
  PackedWeights packed;
  packed.data = AlignedBytes(z(shape.groups * layout.output_tiles) * layout.tile_words * sizeof(std::uint64_t));
  for (int o = 0; o < shape.out_channels; ++o) {
    const int group = o / shape.out_per_group();
    const int inside = o % shape.out_per_group();
    std::uint64_t* words =
        packed.data.as<std::uint64_t>() + z(group * layout.output_tiles + inside / kTileOutputs) * layout.tile_words;
    const int lane = inside % kTileOutputs * kQuad;
    if (layout.run_inputs % kQuad == 0) {  // four inputs are half a byte, and runs follow one another
      const std::uint8_t* from = canonical + z(o) * shape.canonical_bytes_per_channel();
      for (std::size_t i = 0; i < layout.tile_words; ++i) {
        words[i] |= static_cast<std::uint64_t>(from[i / 2] >> (i % 2 * kQuad) & 15) << lane;
      }
      continue;
    }
    for (int tap = 0; tap < shape.taps(); ++tap) {
      for (int c = 0; c < shape.in_per_group(); ++c) {
        const int input = tap % layout.run_taps * shape.in_per_group() + c;
        const std::uint64_t bit = canonical_bit(canonical, shape, o, tap, c);
        words[tap / layout.run_taps * layout.run_words + input / kQuad] |= bit << (lane + input % kQuad);
      }
    }
  }
  return packed;
}

std::size_t scratch_bytes(const ConvShape& shape) {
  const Layout layout(shape);
  return layout.steps_bytes + layout.weights_bytes + z(layout.strips) * layout.strip_bytes;
}

}  // namespace
}  // namespace amx

const Kernel kAmxKernel = {"amx-int8", Isa::amx, amx::supports, amx::prepare, amx::scratch_bytes, amx::run};

}  // namespace ebnet
