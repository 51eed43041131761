// Layouts of the AMX kernel (amx.cpp has the idea): how weights and activations lie in memory.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bconv/bconv.h"

namespace ebnet::amx {
namespace {

inline int divide_up(int value, int by) { return (value + by - 1) / by; }

inline int lesser(int a, int b) { return a < b ? a : b; }

}  // namespace

inline constexpr int kTileRows = 16;     // of a tile register, 64 bytes each
inline constexpr int kTileInputs = 64;   // products that one tile product adds to each of its dot products
inline constexpr int kTileOutputs = 16;  // output channels of one tile
inline constexpr int kQuad = 4;          // inputs that lie side by side in a row of a weight tile
inline constexpr std::size_t kTileBytes = kTileRows * 64;
inline constexpr std::size_t kKeptBudget = 64 * 1024;   // bytes of a group's expanded weights, kept from strip to strip
inline constexpr std::size_t kNearBudget = 20 * 1024;   // bytes of a strip where weights are kept: two fit into L1
inline constexpr std::size_t kFarBudget = 128 * 1024;   // else: in L2, where many pixels share an expansion of weights
inline constexpr std::size_t kMostPairBytes = 512 * 1024;  // of the expanded weights of 32 output channels

// Everything that follows from the shape. What `prepare` uses depends on channels and kernel alone, so weights serve
// images of any size.
//
// A strip holds the +-1 bytes of one group for some output rows: [phase][row][position][input], where input row r of
// the strip has phase r % stride_h and row r / stride_h. Each row starts with its left padding, and its right padding
// is the left padding of the row that follows. So `row_positions` positions after an output's inputs lie those of the
// output below, for any stride, and a strip is one long line of outputs; those past the image's width are not used.
struct Layout {
  explicit Layout(const ConvShape& shape);

  int run_taps;            // neighbouring taps whose inputs lie side by side: a row of the kernel, or 1 where dilated
  int runs;                // of taps
  int run_inputs;          // of one run
  int run_words;           // 64-bit words of weights of one run and 16 output channels: four inputs each
  int run_steps;           // tile products over one run
  int steps;               // over all runs
  int output_tiles;        // of 16 output channels in one group
  int pairs;               // of output tiles
  bool kept;               // all pairs are expanded once, else one at a time
  int phases;              // of rows that some tap reads
  int row_positions;       // outputs from row to row of the line
  int halo_rows;           // rows of a phase beyond the strip's output rows
  int strip_rows;          // output rows of one strip, at most
  std::size_t tile_words;  // of one output tile: [run][word]
  std::size_t row_bytes;
  std::size_t phase_bytes;
  std::size_t pair_bytes;  // expanded weights: [step][2 output tiles][tile]
  std::size_t steps_bytes, weights_bytes, strip_bytes;
  int strips;              // in memory at a time: one is read, the next is written
};

// One tile product over the inputs of a run.
struct Step {
  std::uint32_t inputs;  // bytes from the first input of an output position in the strip
  std::uint32_t word;    // of the weights of an output tile
  std::uint32_t words;   // at most kTileRows
};

void run(const ConvTask& task);

}  // namespace ebnet::amx
