// Batches of images that lie in memory: crop, flip, normalise.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebnet {

// Image i of the batch is the square of `size` at (top, left) of image `indices[i]` with `padding` black pixels all round,
// mirrored left to right where `mirrored[i]`.
struct CropBatch {
  const std::uint8_t* images = nullptr;  // [..., size, size, channels]
  int size = 0, channels = 0, padding = 0, batch = 0;
  const std::int64_t* indices = nullptr;
  const std::int64_t* corners = nullptr;  // [batch, 2]: top and left, each in 0 .. 2 * padding
  const std::uint8_t* mirrored = nullptr;
  std::uint8_t* out = nullptr;  // [batch, size, size, channels]
};

void crop_batch(const CropBatch& task, int threads);

// to[image][channel][place] = table[channel][from[image][place][channel]].
struct NormaliseBatch {
  const std::uint8_t* from = nullptr;
  int batch = 0, channels = 0;
  std::size_t places = 0;
  const float* table = nullptr;  // [channels, 256]
  float* to = nullptr;
};

void normalise_batch(const NormaliseBatch& task, int threads);

}  // namespace ebnet
