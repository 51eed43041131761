// Bounds that keep a crafted file from costing memory or time out of proportion to its size and its image's.
//
// A weight of an honest network works at most once for each pixel of the image, mostly for far fewer: networks halve
// their maps as they widen. So the work that is allowed grows with pixels times bytes of the file, the memory with each
// of them, from a floor that any computer has to spare.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ebnet {

struct Limits {
  std::uint64_t file_bytes = std::uint64_t{1} << 30;
  std::uint64_t header_bytes = std::uint64_t{4} << 20;
  int ops = 4096;
  int channels = 1 << 15;
  int kernel = 15;
  int stride = 15;
  int dilation = 15;
  int experts = 256;
  int side = 8192;          // pixels of a height or width
  int trained_side = 1024;  // the same of the size in the file, which a program may run without being asked

  // Values read and written for one image (see work.h), and bytes of activations, scratch and experts that are laid
  // out. 0: as many as go with the file and the image.
  std::uint64_t work = 0;
  std::uint64_t memory = 0;
  // Of one row of an op: a run can be cancelled between them.
  std::uint64_t row_work = std::uint64_t{1} << 28;

  // What a caller may set; 0 leaves it as it is.
  void set(std::uint64_t image_work, std::uint64_t image_memory, int image_side) {
    if (image_work != 0) work = row_work = image_work;
    if (image_memory != 0) memory = image_memory;
    if (image_side != 0) side = trained_side = image_side;
  }

  std::uint64_t work_for(std::uint64_t bytes_of_file, std::uint64_t pixels) const {
    constexpr std::uint64_t kFloor = std::uint64_t{1} << 28, kMost = std::uint64_t{1} << 38;
    return work != 0 ? work : std::min(kMost, kFloor + pixels * (bytes_of_file / 8));
  }
  std::uint64_t memory_for(std::uint64_t bytes_of_file, std::uint64_t pixels) const {
    constexpr std::uint64_t kFloor = std::uint64_t{32} << 20, kMost = std::uint64_t{1} << 30;
    return memory != 0 ? memory : std::min(kMost, kFloor + 2048 * pixels) + 16 * bytes_of_file;
  }
};

}  // namespace ebnet
