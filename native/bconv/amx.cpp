// Binary convolution with AMX: signs as bytes, 16 pixels x 16 output channels x 64 inputs a tile product.
//
// TDPBSSD multiplies a tile of 16 pixels x 64 inputs by a tile of 64 inputs x 16 output channels and adds to 16 x 16
// sums: 16384 products in 16 cycles, 1024 a cycle. Both factors are +-1 bytes, expanded from bits into scratch; where
// padding or nothing lies the byte is 0, so that dot products come out exact without any counting.
//
// A block is 2 x 2 tiles of sums: two of pixels by two of output channels. A step loads two tiles of either factor,
// each for two products: 64 rows of 64 bytes from L1, two a cycle, behind 64 cycles of products. (80 rows where inputs
// are 32 bytes apart and half of the rows straddle two lines.) A product takes about 52 cycles from start to end,
// which four sums in turn hide; a block of fewer sums waits.
//
// Pixels are taken from a strip, in which output positions are evenly spaced whatever the stride (amx_layout.h). A row
// of the kernel's taps is one run of bytes there, cut into steps of 64: 3 x 16 inputs fill 48 of 64 bytes, 3 x 32 fill
// 96 of 128, multiples of 64 fill all. The weights of what is left are 0.
//
// Vector work runs in the shadow of the products, a piece after each step: the epilogue of the block before, and the
// expansion of the strip after this one. The first block of a pair of output tiles expands its weights too, one step
// ahead: 32 blends and stores.
//
// Expected, an estimate and no measurement: 1024 a cycle, times the filled part of runs (3/4 or 1), times outputs /
// positions of the line (7/8 at 7x7 to 56/57; 1 for 1x1), times the filled part of the last block, less about 20
// cycles a block and the first strip's expansion (1.5 cycles for 64 inputs). That gives dot products of
// 1262-2-4:8:8:16 at 540 to 690 a cycle where groups have 16 or 32 inputs and 750 to 860 with 64 or more, 780 over all
// layers; with the epilogue 570 for 1x1 over 128 channels, where it is longer than the products, and 760 over all.
// Strips of 1x1 over 512 and 1024 channels come from L2, at 32 bytes a cycle, which may cost a tenth more there.

#include "bconv/amx_expand.h"
#include "bconv/amx_tiles.h"
#include "bconv/epilogue_avx512.h"

namespace ebnet::amx {
namespace {

constexpr int kBlockOutputs = 2 * kTileOutputs;
constexpr int kBlockDots = 2 * kTileRows * kBlockOutputs;

// The steps of one output, in the order of the weights.
void list_steps(const ConvShape& s, const Layout& layout, Step* steps) {
  for (int run = 0; run < layout.runs; ++run) {
    const int tap = run * layout.run_taps;
    const int row = tap / s.kernel_w * s.dilation_h;
    const std::size_t inputs = static_cast<std::size_t>(row % s.stride_h) * layout.phase_bytes +
                               static_cast<std::size_t>(row / s.stride_h) * layout.row_bytes +
                               static_cast<std::size_t>(tap % s.kernel_w * s.dilation_w * s.in_per_group());
    for (int word = 0; word < layout.run_words; word += kTileRows) {
      *steps++ = {static_cast<std::uint32_t>(inputs) + static_cast<std::uint32_t>(word * kQuad),
                  static_cast<std::uint32_t>(run * layout.run_words + word),
                  static_cast<std::uint32_t>(lesser(layout.run_words - word, kTileRows))};
    }
  }
}

// The dot products of a block, [position][kBlockOutputs], that wait for the epilogue.
class Waiting {
 public:
  Waiting(const ConvTask& task, const Layout& layout, const std::int32_t* dots)
      : task_(task),
        steps_(*task.shape, *task.epilogue),
        dots_(dots),
        out_w_(task.shape->out_w()),
        row_positions_(layout.row_positions) {}

  // There are new dot products. `position` counts from the first output of `row`.
  void begin(int row, int position, int positions, int channel, int channels) {
    row_ = row + position / row_positions_;
    x_ = position % row_positions_;
    positions_ = positions;
    channels_ = ChannelBlocks(*task_.epilogue, channel, channels);
    done_ = 0;
  }

  // Runs the epilogue of at least the first part / parts of the positions.
  void finish(int part, int parts) {
    while (done_ * parts < positions_ * part) finish_piece();
  }

 private:
  // Up to 16 neighbours in one row, or the positions between the end of a row and the next.
  void finish_piece() {
    const int pixels = lesser(lesser(positions_ - done_, out_w_ - x_), kTileRows);
    if (pixels > 0) {
      const std::size_t row = static_cast<std::size_t>(row_);
      const std::size_t pixel = row * static_cast<std::size_t>(out_w_) + static_cast<std::size_t>(x_);
      finish_tile(*task_.shape, *task_.epilogue, steps_, channels_,
                  {dots_ + done_ * kBlockOutputs, kBlockOutputs, pixel, row, pixels});
    }
    const int passed = pixels > 0 ? pixels : row_positions_ - x_;
    done_ += passed;
    x_ += passed;
    if (x_ == row_positions_) {
      x_ = 0;
      ++row_;
    }
  }

  const ConvTask& task_;
  const EpilogueSteps steps_;
  const std::int32_t* const dots_;
  const int out_w_, row_positions_;
  int row_ = 0, x_ = 0, positions_ = 0, done_ = 0;
  ChannelBlocks channels_;
};

// Tiles 0 to 3 are the sums, 4 and 5 the pixels, 6 and 7 the weights.
TileConfig tile_config(int tile_pixels) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 64;
    config.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? tile_pixels : kTileRows);
  }
  return config;
}

class Convolution {
 public:
  explicit Convolution(const ConvTask& task)
      : task_(task), shape_(*task.shape), layout_(shape_), waiting_(task, layout_, dots_), expander_(task, layout_) {
    auto* scratch = static_cast<std::uint8_t*>(task.scratch);
    steps_ = reinterpret_cast<Step*>(scratch);
    weights_ = scratch + layout_.steps_bytes;
    list_steps(shape_, layout_, steps_);
    position_bytes_ = static_cast<std::size_t>(shape_.stride_w * shape_.in_per_group());
    const int rows = task.row_end - task.row_begin;
    const int fewest = divide_up(rows, layout_.strip_rows);
    strip_rows_ = divide_up(rows, fewest);
    group_strips_ = divide_up(rows, strip_rows_);
    // Every pixel tile has the same number of pixels: as few as give the same number of tiles.
    const int positions = line_positions(strip_rows_);
    tile_pixels_ = divide_up(positions, divide_up(positions, kTileRows));
  }

  void run() {
    configure_tiles(tile_config(tile_pixels_));
    begin_rows(shape_, *task_.epilogue, task_.row_begin, task_.row_end);
    const int strips = shape_.groups * group_strips_;
    begin_strip(0);
    expander_.advance(1, 1);
    for (int strip = 0; strip < strips; ++strip) {
      if (strip + 1 < strips) begin_strip(strip + 1);
      run_strip(strip);
    }
    waiting_.finish(1, 1);
    release_tiles();
  }

 private:
  int first_row(int strip) const { return task_.row_begin + strip % group_strips_ * strip_rows_; }
  int rows_of(int strip) const { return lesser(strip_rows_, task_.row_end - first_row(strip)); }
  int line_positions(int rows) const { return (rows - 1) * layout_.row_positions + shape_.out_w(); }
  std::uint8_t* place(int strip) const {
    return weights_ + layout_.weights_bytes + static_cast<std::size_t>(strip % 2) * layout_.strip_bytes;
  }

  void begin_strip(int strip) {
    expander_.begin(strip / group_strips_, first_row(strip), rows_of(strip), place(strip));
  }

  void run_strip(int strip) {
    const int group = strip / group_strips_;
    const int positions = line_positions(rows_of(strip));
    inputs_ = place(strip);
    block_ = 0;
    blocks_ = layout_.pairs * divide_up(positions, 2 * tile_pixels_);
    for (int pair = 0; pair < layout_.pairs; ++pair) {
      Pair now;
      now.words = task_.weights->data.as<std::uint64_t>() +
                  static_cast<std::size_t>(group * layout_.output_tiles + 2 * pair) * layout_.tile_words;
      now.weights = weights_ + (layout_.kept ? static_cast<std::size_t>(pair) * layout_.pair_bytes : 0);
      const int first = 2 * pair * kTileOutputs;
      const int channels = lesser(shape_.out_per_group() - first, kBlockOutputs);
      bool fresh = !layout_.kept || strip % group_strips_ == 0;
      for (int position = 0; position < positions; position += 2 * tile_pixels_) {
        const int here = lesser(positions - position, 2 * tile_pixels_);
        multiply(now, position, here > tile_pixels_ ? 2 : 1, channels > kTileOutputs ? 2 : 1, fresh);
        waiting_.begin(first_row(strip), position, here, group * shape_.out_per_group() + first, channels);
        ++block_;
        fresh = false;
      }
    }
  }

  // The weights of two output tiles.
  struct Pair {
    const std::uint64_t* words;
    std::uint8_t* weights;  // expanded: [step][2][tile]
  };

  void multiply(const Pair& pair, int position, int pixel_tiles, int output_tiles, bool fresh) {
    if (output_tiles == 2) {
      pixel_tiles == 2 ? multiply_block<2, 2>(pair, position, fresh) : multiply_block<1, 2>(pair, position, fresh);
    } else {
      pixel_tiles == 2 ? multiply_block<2, 1>(pair, position, fresh) : multiply_block<1, 1>(pair, position, fresh);
    }
  }

  // The block at a position of the line; `fresh`: its weights are yet to be expanded.
  template <int kPixelTiles, int kOutputTiles>
  void multiply_block(const Pair& pair, int position, bool fresh) {
    constexpr bool kTwoRows = kPixelTiles == 2, kTwoColumns = kOutputTiles == 2;
    const std::uint8_t* inputs = inputs_ + static_cast<std::size_t>(position) * position_bytes_;
    const std::size_t next_tile = static_cast<std::size_t>(tile_pixels_) * position_bytes_;
    zero_tile<0>();
    if (kTwoColumns) zero_tile<1>();
    if (kTwoRows) zero_tile<2>();
    if (kTwoRows && kTwoColumns) zero_tile<3>();
    if (fresh) expand_step<kOutputTiles>(pair, 0);
    for (int step = 0; step < layout_.steps; ++step) {
      if (fresh && step + 1 < layout_.steps) expand_step<kOutputTiles>(pair, step + 1);
      const std::uint8_t* weights = pair.weights + static_cast<std::size_t>(step) * 2 * kTileBytes;
      const std::uint8_t* pixels = inputs + steps_[step].inputs;
      load_tile<6>(weights, 64);
      load_tile<4>(pixels, position_bytes_);
      multiply_tiles<0, 4, 6>();
      if (kTwoColumns) {
        load_tile<7>(weights + kTileBytes, 64);
        multiply_tiles<1, 4, 7>();
      }
      if (kTwoRows) {
        load_tile<5>(pixels + next_tile, position_bytes_);
        multiply_tiles<2, 5, 6>();
      }
      if (kTwoRows && kTwoColumns) multiply_tiles<3, 5, 7>();
      waiting_.finish(step + 1, layout_.steps);
      expander_.advance(block_ * layout_.steps + step + 1, blocks_ * layout_.steps);
    }
    constexpr std::size_t kStride = kBlockOutputs * sizeof(std::int32_t);
    std::int32_t* second = dots_ + tile_pixels_ * kBlockOutputs;
    store_tile<0>(dots_, kStride);
    if (kTwoColumns) store_tile<1>(dots_ + kTileOutputs, kStride);
    if (kTwoRows) store_tile<2>(second, kStride);
    if (kTwoRows && kTwoColumns) store_tile<3>(second + kTileOutputs, kStride);
  }

  template <int kOutputTiles>
  void expand_step(const Pair& pair, int step) {
    std::uint8_t* to = pair.weights + static_cast<std::size_t>(step) * 2 * kTileBytes;
    for (std::size_t tile = 0; tile < kOutputTiles; ++tile) {
      expand_weights(layout_, steps_[step], pair.words + tile * layout_.tile_words, to + tile * kTileBytes);
    }
  }

  const ConvTask& task_;
  const ConvShape& shape_;
  const Layout layout_;
  Waiting waiting_;
  StripExpander expander_;  // of the strip after the one whose blocks are computed
  Step* steps_;
  std::uint8_t* weights_;
  std::size_t position_bytes_;  // from output to output in a strip
  int strip_rows_, group_strips_, tile_pixels_;
  const std::uint8_t* inputs_ = nullptr;  // the strip
  std::int64_t block_ = 0, blocks_ = 0;   // of the strip
  alignas(64) std::int32_t dots_[kBlockDots];  // of the waiting block until the steps are done, then of the next
};

}  // namespace

void run(const ConvTask& task) {
  if (task.row_begin < task.row_end) Convolution(task).run();
}

}  // namespace ebnet::amx
