// Images as they come to pixels as the first op reads them, channels last: one row at a time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebnet {

// Planes of `width` floats, `plane` floats apart, to pixels `stride` floats apart. Whether all of them are finite.
bool interleave_planes(const float* from, std::size_t plane, int channels, int width, float* to, std::size_t stride);

// The same to bytes, `channels` of a pixel: round(real * inverse[c] + zero[c]) within 0 to 255.
bool pixels_of_planes(const float* from, std::size_t plane, int channels, std::size_t pixels, const float* inverse,
                      const float* zero, std::uint8_t* to);

}  // namespace ebnet
