// Reals to bit planes: the entry of the binary body, where no binary convolution's epilogue does it on the way.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebnet {

// For `pixels` pixels of `channels` floats (input_stride apart):
//   bits = (bn_scale[c] * value + bn_shift[c] >= 0), in the layout [pixel][group][64-bit words] with `per_group` channels
//   a group, unused bits 0;  sums[c] += the values, pixel by pixel (sums may be null; bits may be null).
// Call it row by row to get the row sums of the convolutions' epilogue.
void binarize(const float* input, std::size_t input_stride, int pixels, int channels, int per_group,
              const float* bn_scale, const float* bn_shift, std::uint64_t* bits, float* sums);

}  // namespace ebnet
