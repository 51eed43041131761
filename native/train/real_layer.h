// A real layer of a stem or a shortcut on the CPU, forward and backward: fp32, tensors as torch lays them out.
//
//   x [batch][in][h][w] -> average pool of pool x pool (perhaps) -> convolution -> batch norm -> activation -> y
//
// All but the convolution's output z is made again where the backward pass needs it. z is kept in an order of its own
// (`RealTiles`), so between forward and backward it only passes through.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/activation.h"
#include "base/cpu.h"
#include "base/shape.h"
#include "train/phases.h"

namespace ebnet {

struct RealLayer {
  ConvShape shape;  // one group, no dilation; in_h and in_w are those of the pooled input
  int pool = 1;     // windows at the far edges are cut, and averaged over what is left; 1: no pool
  int map_h = 0, map_w = 0;  // of x itself
  int batch = 0;
  Activation activation = Activation::none;
  bool training = false;  // normalised by the batch's statistics; else by the running ones
  float eps = 0, momentum = 0;
  const float *x = nullptr, *weight = nullptr, *gamma = nullptr, *beta = nullptr, *slope = nullptr;
  float *running_mean = nullptr, *running_var = nullptr;  // moved by a training forward pass
  float *mean = nullptr, *rstd = nullptr;                 // [out], of the batch or the running ones; written forward
  float* z = nullptr;  // storage_floats(); null in a forward pass that nothing follows
  float* y = nullptr;
  std::size_t y_stride = 0;  // floats from one image of y (or dy) to the next: y may be some channels of a wider map

  // Backward only.
  const float* dy = nullptr;
  float *dx = nullptr, *dweight = nullptr, *dgamma = nullptr, *dbeta = nullptr, *dslope = nullptr;  // dx may be null
  bool accumulate = false;  // add to dx instead of writing it
};

// A tile is some output rows of one image, or, where maps are small, several whole images. The cut depends on nothing but
// the shapes.
struct RealTiles {
  explicit RealTiles(const RealLayer& layer);
  int positions;        // of an image
  int images;           // whole images in a tile, or
  int rows;             // output rows of one image, if it does not fit into a tile
  int per_image, count; // tiles
  int width;            // places of a tile: its positions, rounded up to whole vectors of any level
  TapPlanes planes;     // of each image; nothing where taps do not overlap
};

// Memory for the planes of a tile's images, with a vector behind that the last row may read.
std::size_t plane_floats(const RealTiles& tiles);

// The images and output rows of one tile.
struct TilePart {
  TilePart(const RealLayer& layer, const RealTiles& tiles, int tile);
  int first_image, images, first_row, rows;
  int run;  // positions of one image
  int positions;
};

// Floats of z.
std::size_t storage_floats(const RealLayer& layer);

// For one level the results do not depend on the number of threads, except that weight gradients are sums over threads.
void real_forward(const RealLayer& layer, int threads, DenseLevel level);
void real_backward(const RealLayer& layer, int threads, DenseLevel level);

}  // namespace ebnet
