// What a real layer does to one tile, forward and backward.
//
// With z = W seen, zhat = (z - mean) * rstd, u = gamma * zhat + beta, y = act(u) and N positions in the batch:
//
//   du = dy * act'(u)                                  relu: 1 for u > 0, else 0; prelu: 1 for u > 0, else slope
//   dbeta = sum du     dgamma = sum du * zhat          dslope = sum of dy * u where u <= 0
//   dz = gamma * rstd * (du - dbeta / N - zhat * dgamma / N)          (by running statistics: gamma * rstd * du)
//   dW = dz seen^T     dseen = W^T dz
//
// du is cheap beside fetching it from memory: both passes over dy make it anew.
#pragma once
#include "train/step_levels.h"
#include "train/real_patches.h"
#include "train/real_products.h"

namespace ebnet {
namespace {

inline Vector pick(Mask condition, Vector yes, Vector no) { return condition ? yes : no; }

inline Multiply weights_by(const RealLayer& layer, const Seen& seen, float* out, int width) {
  const int depth = layer.shape.in_channels * layer.shape.taps();
  return {layer.weight, size(depth), 1, seen.lines, seen.apart, depth, out, size(width)};
}

// The sum of value(i) over i = 0, kLanes, ... below `end`, in four sums that do not wait for each other.
template <typename Value>
float sum_over(int end, Value value) {
  Vector sums[4] = {};
  int i = 0;
  for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] += value(i + k * kLanes);
  }
  for (; i < end; i += kLanes) sums[0] += value(i);
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The mean of a row, and the sum of squared distances from it.
inline ChannelSums moments_of(const float* row, int count) {
  const int whole = count / kLanes * kLanes;
  float sum = sum_over(whole, [&](int i) { return load(row + i); });
  for (int i = whole; i < count; ++i) sum += row[i];
  const float mean = sum / static_cast<float>(count);
  float square = sum_over(whole, [&](int i) {
    const Vector off = load(row + i) - splat(mean);
    return off * off;
  });
  for (int i = whole; i < count; ++i) square += (row[i] - mean) * (row[i] - mean);
  return {static_cast<double>(mean), static_cast<double>(square)};
}

void convolve_tile(const RealLayer& layer, const RealTiles& tiles, int tile, float* z, ChannelSums* moments,
                   float* scratch) {
  const TilePart part(layer, tiles, tile);
  const Seen seen(layer, tiles, part, scratch, scratch + plane_floats(tiles));
  const int used = (part.positions + kLanes - 1) / kLanes * kLanes;
  multiply(weights_by(layer, seen, z, tiles.width), layer.shape.out_channels, used);
  if (moments == nullptr) return;
  for (int c = 0; c < layer.shape.out_channels; ++c) moments[c] = moments_of(z + size(c) * size(tiles.width), part.positions);
}

inline Vector activated(Activation activation, Vector u, float slope) {
  if (activation == Activation::relu) return pick(u < splat(0.0f), splat(0.0f), u);  // NaN stays
  if (activation == Activation::prelu) return pick(u > splat(0.0f), u, splat(slope) * u);
  return u;
}

inline float slope_of(const RealLayer& layer, int channel) {
  return layer.activation == Activation::prelu ? layer.slope[channel] : 0.0f;
}

// Where an image's positions of a tile begin in y or dy.
inline size_t place_in_map(const RealLayer& layer, const TilePart& part, int image, int channel) {
  return size(part.first_image + image) * layer.y_stride +
         size(channel * layer.shape.out_h() * layer.shape.out_w() + part.first_row * layer.shape.out_w());
}

// visit(place in the tile, place in the map) for whole vectors that together cover a channel's positions of a tile; those at
// an image's end overlap the ones before. Only where an image has a vector's positions at all.
template <typename Visit>
void for_overlapping(const RealLayer& layer, const TilePart& part, int channel, Visit visit) {
  for (int image = 0; image < part.images; ++image) {
    const size_t map = place_in_map(layer, part, image, channel), tile = size(image * part.run);
    int i = 0;
    for (; i + kLanes <= part.run; i += kLanes) visit(tile + size(i), map + size(i));
    if (i < part.run) visit(tile + size(part.run - kLanes), map + size(part.run - kLanes));
  }
}

void activate_tile(const RealLayer& layer, const RealTiles& tiles, int tile, const float* z, Affine affine,
                   float* scratch) {
  const TilePart part(layer, tiles, tile);
  for (int c = 0; c < layer.shape.out_channels; ++c, z += tiles.width) {
    const Vector scale = splat(affine.scale[c]), shift = splat(affine.shift[c]);
    const float slope = slope_of(layer, c);
    const auto y = [&](const float* from) { return activated(layer.activation, scale * load(from) + shift, slope); };
    if (part.run >= kLanes) {
      for_overlapping(layer, part, c, [&](size_t from, size_t to) { store(layer.y + to, y(z + from)); });
      continue;
    }
    for (int i = 0; i < part.positions; i += kLanes) store(scratch + i, y(z + i));
    for (int image = 0; image < part.images; ++image) {
      float* to = layer.y + place_in_map(layer, part, image, c);
      const float* from = scratch + size(image * part.run);
      for (int i = 0; i < part.run; ++i) to[i] = from[i];
    }
  }
}

// dy of one channel of a tile, with zeros behind its positions.
inline void fetch_gradient(const RealLayer& layer, const RealTiles& tiles, const TilePart& part, int channel, float* dy) {
  for (int image = 0; image < part.images; ++image) {
    const float* from = layer.dy + place_in_map(layer, part, image, channel);
    float* to = dy + size(image * part.run);
    for (int i = 0; i < part.run; ++i) to[i] = from[i];
  }
  for (int i = part.positions; i < tiles.width; ++i) dy[i] = 0.0f;
}

inline Vector before_activation(Activation activation, Vector dy, Vector u, float slope) {
  if (activation == Activation::none) return dy;
  return pick(u <= splat(0.0f), splat(activation == Activation::relu ? 0.0f : slope) * dy, dy);  // NaN: dy
}

void sum_gradients_of_tile(const RealLayer& layer, const RealTiles& tiles, int tile, const float* z, Affine affine,
                           ChannelSums* sums, float* scratch) {
  const TilePart part(layer, tiles, tile);
  for (int c = 0; c < layer.shape.out_channels; ++c, z += tiles.width) {
    fetch_gradient(layer, tiles, part, c, scratch);
    const Vector scale = splat(affine.scale[c]), shift = splat(affine.shift[c]);
    const Vector mean = splat(layer.mean[c]), rstd = splat(layer.rstd[c]);
    Vector first = {}, second = {}, third = {};
    for (int i = 0; i < part.positions; i += kLanes) {
      const Vector value = load(z + i), dy = load(scratch + i), u = scale * value + shift;
      const Vector du = before_activation(layer.activation, dy, u, slope_of(layer, c));
      first += du;
      second += du * ((value - mean) * rstd);
      third += pick(u <= splat(0.0f), dy * u, splat(0.0f));
    }
    sums[c] = {static_cast<double>(sum_of(first)), static_cast<double>(sum_of(second)),
               static_cast<double>(sum_of(third))};
  }
}

void gradients_of_tile(const RealLayer& layer, const RealTiles& tiles, int tile, const float* z, Affine affine,
                       const ChannelSums* sums, float* dweight, float* scratch) {
  const TilePart part(layer, tiles, tile);
  const int depth = layer.shape.in_channels * layer.shape.taps(), channels = layer.shape.out_channels;
  const size_t width = size(tiles.width);
  const int used = (part.positions + kLanes - 1) / kLanes * kLanes;
  float* room = scratch + plane_floats(tiles);
  float* dz = room + size(depth) * width + kLanes;  // behind the vector that packing may write too much
  float* dseen = dz + size(channels) * width;
  for (int c = 0; c < channels; ++c, z += tiles.width) {
    float* row = dz + size(c) * width;
    const Vector scale = splat(affine.scale[c]), shift = splat(affine.shift[c]);
    const Vector mean = splat(layer.mean[c]), rstd = splat(layer.rstd[c]);
    const Vector first = splat(sums == nullptr ? 0.0f : static_cast<float>(sums[c].first));
    const Vector second = splat(sums == nullptr ? 0.0f : static_cast<float>(sums[c].second));
    const float slope = slope_of(layer, c);
    const auto gradient = [&](Vector value, Vector dy) {
      const Vector du = before_activation(layer.activation, dy, scale * value + shift, slope);
      return scale * (du - first - (value - mean) * rstd * second);
    };
    if (part.run >= kLanes) {
      for_overlapping(layer, part, c, [&](size_t at, size_t from) {
        store(row + at, gradient(load(z + at), load(layer.dy + from)));
      });
    } else {
      fetch_gradient(layer, tiles, part, c, row);
      for (int i = 0; i < part.positions; i += kLanes) store(row + i, gradient(load(z + i), load(row + i)));
    }
    for (int i = part.positions; i < used; ++i) row[i] = 0.0f;
  }
  const Seen seen(layer, tiles, part, scratch, room);
  add_products({dz, width, seen.lines, seen.apart, used, dweight, size(depth)}, channels, depth);
  if (layer.dx == nullptr) return;
  multiply({layer.weight, 1, size(depth), dz, width, channels, dseen, width}, depth, used);
  unpack(layer, tiles.planes, part, width, dseen, scratch);
}

}  // namespace
}  // namespace ebnet
