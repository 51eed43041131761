// Images as they come to pixels as the first op reads them, channels last: one row at a time.
#pragma once
#include <cstddef>

namespace ebnet {

// Planes of `width` floats, `plane` floats apart, to pixels `stride` floats apart. Whether all of them are finite.
bool interleave_planes(const float* from, std::size_t plane, int channels, int width, float* to, std::size_t stride);

}  // namespace ebnet
