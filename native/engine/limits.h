// Bounds that keep a crafted file from costing memory or time out of proportion to its size.
#pragma once
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
  int side = 8192;                                          // pixels of a height or width
  std::uint64_t activation_bytes = std::uint64_t{1} << 30;  // of all images under way at once
  std::uint64_t image_macs = std::uint64_t{1} << 38;        // multiply-accumulates of one image
  std::uint64_t image_traffic = std::uint64_t{1} << 34;     // bytes of all values of one image together
};

}  // namespace ebnet
