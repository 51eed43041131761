// Tiles, threads and batch norm's statistics; what happens to a tile is in real_kernels.h.
#include "train/real_layer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/step_levels.h"
#include "train/threads.h"

namespace ebnet {
namespace {

constexpr int kWidest = 16;           // lanes of any level
constexpr int kTilePositions = 512;   // enough that sums over a tile end seldom
constexpr int kSecondCache = 1 << 17;  // floats of a tile's input

std::size_t size(int value) { return static_cast<std::size_t>(value); }

int ceil_div(int a, int b) { return (a + b - 1) / b; }

int depth(const ConvShape& s) { return s.in_channels * s.taps(); }

std::size_t tile_floats(const RealLayer& layer, const RealTiles& tiles) {
  return size(layer.shape.out_channels) * size(tiles.width);
}

// Planes, a tile's input, the gradient of it, its z, and a row; a vector may be written behind them.
std::size_t scratch_floats(const RealLayer& layer, const RealTiles& tiles) {
  return plane_floats(tiles) + size(2 * depth(layer.shape) + 2 * layer.shape.out_channels + 2) * size(tiles.width) + size(kWidest);
}

// run(tile) for all tiles, those of one image on one thread: their gradients overlap.
template <typename Run>
void for_tiles_on_threads(const RealTiles& tiles, int threads, Run run) {
  const int units = tiles.count / tiles.per_image, parts = std::max(1, std::min(threads, units));
  on_threads(parts, [&](int part) {
    const auto cut = [&](int p) { return static_cast<int>(static_cast<std::int64_t>(units) * p / parts) * tiles.per_image; };
    for (int tile = cut(part); tile < cut(part + 1); ++tile) run(tile, part);
  });
}

// Batch norm's statistics from those of the tiles (Chan, Golub & LeVeque): squared distances from a tile's own mean lose
// nothing to cancellation, however far the mean is from zero.
void merge_moments(const RealLayer& layer, const RealTiles& tiles, const std::vector<ChannelSums>& moments) {
  const std::size_t channels = size(layer.shape.out_channels);
  const double count = static_cast<double>(layer.batch) * tiles.positions;
  std::vector<double> counts;
  for (int t = 0; t < tiles.count; ++t) counts.push_back(TilePart(layer, tiles, t).positions);
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0, squares = 0;
    for (int t = 0; t < tiles.count; ++t) mean += counts[size(t)] * moments[size(t) * channels + c].first;
    mean /= count;
    for (int t = 0; t < tiles.count; ++t) {
      const ChannelSums& own = moments[size(t) * channels + c];
      squares += own.second + counts[size(t)] * (own.first - mean) * (own.first - mean);
    }
    layer.mean[c] = static_cast<float>(mean);
    layer.rstd[c] = static_cast<float>(1.0 / std::sqrt(squares / count + static_cast<double>(layer.eps)));
    const auto move = [&](float& running, double to) {
      running = static_cast<float>(running + static_cast<double>(layer.momentum) * (to - running));
    };
    move(layer.running_mean[c], mean);
    move(layer.running_var[c], squares / (count - 1));
  }
}

class Coefficients {
 public:
  explicit Coefficients(const RealLayer& layer) : values_(2 * size(layer.shape.out_channels)) {
    const std::size_t channels = values_.size() / 2;
    for (std::size_t c = 0; c < channels; ++c) {
      values_[c] = layer.gamma[c] * layer.rstd[c];
      values_[channels + c] = layer.beta[c] - layer.mean[c] * values_[c];
    }
  }
  Affine affine() const { return {values_.data(), values_.data() + values_.size() / 2}; }

 private:
  std::vector<float> values_;
};

}  // namespace

const StepKernels& step_kernels(DenseLevel level) {
  return PerLevel<StepKernels>{&kStepPortable, EBNET_ON_X86_64(kStepAvx2), EBNET_ON_X86_64(kStepAvx512)}.at(level);
}

RealTiles::RealTiles(const RealLayer& layer) {
  const ConvShape& s = layer.shape;
  const int widest = std::max(depth(s), s.out_channels);
  const int most = std::clamp(kSecondCache / widest / kWidest * kWidest, 4 * kWidest, kTilePositions);
  positions = s.out_h() * s.out_w();
  images = std::clamp(most / positions, 1, layer.batch);
  images = ceil_div(layer.batch, ceil_div(layer.batch, images));
  rows = s.out_h();
  per_image = 1;
  if (positions > most) {
    rows = std::max(1, most / s.out_w());
    rows = ceil_div(s.out_h(), ceil_div(s.out_h(), rows));
    per_image = ceil_div(s.out_h(), rows);
  }
  count = per_image > 1 ? per_image * layer.batch : ceil_div(layer.batch, images);
  width = ceil_div(images * rows * s.out_w(), kWidest) * kWidest;
  if (layer.pool == 1) planes = TapPlanes(s, rows);
}

TapPlanes::TapPlanes(const ConvShape& s, int output_rows) {
  const Split highest(-s.pad_h, s.stride_h), leftmost(-s.pad_w, s.stride_w);
  const Split lowest(s.kernel_h - 1 - s.pad_h, s.stride_h), rightmost(s.kernel_w - 1 - s.pad_w, s.stride_w);
  top = -highest.shift, left = -leftmost.shift;
  rows = top + output_rows + std::max(0, lowest.shift);
  pitch = left + ceil_div(s.out_w() + std::max(0, rightmost.shift), kWidest) * kWidest;
  map = size(rows) * size(pitch);
  image = size(s.stride_h * s.stride_w) * map;
}

std::size_t plane_floats(const RealTiles& tiles) { return size(tiles.images) * tiles.planes.image + size(kWidest); }

TilePart::TilePart(const RealLayer& layer, const RealTiles& tiles, int tile) {
  const bool whole = tiles.per_image == 1;
  first_image = whole ? tile * tiles.images : tile / tiles.per_image;
  images = whole ? std::min(tiles.images, layer.batch - first_image) : 1;
  first_row = whole ? 0 : tile % tiles.per_image * tiles.rows;
  rows = std::min(tiles.rows, layer.shape.out_h() - first_row);
  run = rows * layer.shape.out_w();
  positions = images * run;
}

std::size_t storage_floats(const RealLayer& layer) {
  const RealTiles tiles(layer);
  return size(tiles.count) * tile_floats(layer, tiles);
}

void real_forward(const RealLayer& layer, int threads, DenseLevel level) {
  const RealTiles tiles(layer);
  const StepKernels& kernel = step_kernels(level);
  const std::size_t channels = size(layer.shape.out_channels), floats = scratch_floats(layer, tiles);
  const std::size_t tile_size = tile_floats(layer, tiles);
  if (!layer.training) {
    for (std::size_t c = 0; c < channels; ++c) {
      layer.mean[c] = layer.running_mean[c];
      layer.rstd[c] = 1.0f / std::sqrt(layer.running_var[c] + layer.eps);
    }
    const Coefficients coefficients(layer);
    for_tiles_on_threads(tiles, threads, [&](int tile, int) {
      float* own = scratch(floats + tile_size);
      float* z = layer.z != nullptr ? layer.z + size(tile) * tile_size : own + floats;
      kernel.convolve(layer, tiles, tile, z, nullptr, own);
      kernel.activate(layer, tiles, tile, z, coefficients.affine(), own);
    });
    return;
  }
  // Without a backward pass z is not asked for, but the statistics are a barrier: it has to lie somewhere.
  std::vector<float> unasked(layer.z == nullptr ? size(tiles.count) * tile_size : 0);
  float* z = layer.z != nullptr ? layer.z : unasked.data();
  std::vector<ChannelSums> moments(size(tiles.count) * channels);
  for_tiles_on_threads(tiles, threads, [&](int tile, int) {
    kernel.convolve(layer, tiles, tile, z + size(tile) * tile_size, moments.data() + size(tile) * channels, scratch(floats));
  });
  merge_moments(layer, tiles, moments);
  const Coefficients coefficients(layer);
  for_tiles_on_threads(tiles, threads, [&](int tile, int) {
    kernel.activate(layer, tiles, tile, z + size(tile) * tile_size, coefficients.affine(), scratch(floats));
  });
}

void real_backward(const RealLayer& layer, int threads, DenseLevel level) {
  const RealTiles tiles(layer);
  const StepKernels& kernel = step_kernels(level);
  const std::size_t channels = size(layer.shape.out_channels), floats = scratch_floats(layer, tiles);
  const std::size_t tile_size = tile_floats(layer, tiles), weights = channels * size(depth(layer.shape));
  const Coefficients coefficients(layer);
  std::vector<ChannelSums> sums(size(tiles.count) * channels);
  for_tiles_on_threads(tiles, threads, [&](int tile, int) {
    kernel.sum_gradients(layer, tiles, tile, layer.z + size(tile) * tile_size, coefficients.affine(),
                         sums.data() + size(tile) * channels, scratch(floats));
  });
  for (std::size_t i = channels; i < sums.size(); ++i) {
    ChannelSums& total = sums[i % channels];
    total.first += sums[i].first;
    total.second += sums[i].second;
    total.third += sums[i].third;
  }
  const double count = static_cast<double>(layer.batch) * tiles.positions;
  for (std::size_t c = 0; c < channels; ++c) {
    layer.dbeta[c] = static_cast<float>(sums[c].first);
    layer.dgamma[c] = static_cast<float>(sums[c].second);
    if (layer.dslope != nullptr) layer.dslope[c] = static_cast<float>(sums[c].third);
    sums[c].first /= count;
    sums[c].second /= count;
  }
  std::vector<float> partial(weights * size(std::max(0, threads - 1)));
  std::fill_n(layer.dweight, weights, 0.0f);
  for_tiles_on_threads(tiles, threads, [&](int tile, int part) {
    kernel.gradients(layer, tiles, tile, layer.z + size(tile) * tile_size, coefficients.affine(),
                     layer.training ? sums.data() : nullptr,
                     part == 0 ? layer.dweight : partial.data() + size(part - 1) * weights, scratch(floats));
  });
  for (std::size_t i = 0; i < partial.size(); ++i) layer.dweight[i % weights] += partial[i];
}

}  // namespace ebnet
