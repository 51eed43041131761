// Boxes of images that lie in memory, resized to squares: the same bytes as Pillow's bilinear `Image.resize(box=...)`.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebnet {

// Image i of the batch is `boxes[i]` (left, top, right, bottom; fractions are meant) of image `indices[i]` resized to
// size x size, mirrored left to right where `mirrored[i]`.
struct ResizeBatch {
  const std::uint8_t* images = nullptr;  // [..., height, width, channels], of 1 or 3 channels
  int height = 0, width = 0, channels = 0, size = 0, batch = 0;
  const std::int64_t* indices = nullptr;
  const float* boxes = nullptr;  // [batch, 4], within the image and not empty
  const std::uint8_t* mirrored = nullptr;
  std::uint8_t* out = nullptr;  // [batch, size, size, channels]
};

void resize_batch(const ResizeBatch& task, int threads);

}  // namespace ebnet
