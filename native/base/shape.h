// What a convolution looks like: the one description shared by binary and real-valued kernels.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/inline.h"

namespace ebnet {

struct ConvShape {
  int in_channels = 1;
  int out_channels = 1;
  int groups = 1;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int in_h = 1, in_w = 1;

  EBNET_INLINE int out_h() const { return (in_h + 2 * pad_h - dilation_h * (kernel_h - 1) - 1) / stride_h + 1; }
  EBNET_INLINE int out_w() const { return (in_w + 2 * pad_w - dilation_w * (kernel_w - 1) - 1) / stride_w + 1; }
  EBNET_INLINE int in_per_group() const { return in_channels / groups; }
  EBNET_INLINE int out_per_group() const { return out_channels / groups; }
  EBNET_INLINE int taps() const { return kernel_h * kernel_w; }

  // Binary activations are bit planes [pixel][group][words]: 64-bit words of one group at one pixel.
  EBNET_INLINE int words_per_group() const { return (in_per_group() + 63) / 64; }
  EBNET_INLINE int words_per_pixel() const { return groups * words_per_group(); }

  // Canonical (file) weights of one expert: [out channel][ky][kx][in / groups] bits, each channel padded to a byte.
  EBNET_INLINE std::size_t canonical_bytes_per_channel() const {
    return (static_cast<std::size_t>(taps()) * static_cast<std::size_t>(in_per_group()) + 7) / 8;
  }
  EBNET_INLINE std::size_t canonical_bytes() const { return canonical_bytes_per_channel() * static_cast<std::size_t>(out_channels); }

  // True where every field is positive (padding: not negative), groups divide both channel counts and the kernel fits
  // into the padded input. Kernels rely on it and check nothing themselves.
  EBNET_INLINE bool valid() const {
    return in_channels > 0 && out_channels > 0 && groups > 0 && kernel_h > 0 && kernel_w > 0 && stride_h > 0 &&
           stride_w > 0 && pad_h >= 0 && pad_w >= 0 && dilation_h > 0 && dilation_w > 0 && in_h > 0 && in_w > 0 &&
           in_channels % groups == 0 && out_channels % groups == 0 &&
           in_h + 2 * pad_h >= dilation_h * (kernel_h - 1) + 1 && in_w + 2 * pad_w >= dilation_w * (kernel_w - 1) + 1;
  }
};

}  // namespace ebnet
