// A map that is walked by strides, split by the remainders of its rows and columns: stride x stride phases, each a small
// map. A tap of a kernel sees one phase, shifted by whole places.
#pragma once
#include <cstddef>

#include "base/inline.h"
#include "base/shape.h"

namespace ebnet {

// A tap, or a place of the map: its phase, and the shift in whole strides.
struct Split {
  EBNET_INLINE Split(int offset, int stride) {
    shift = offset >= 0 ? offset / stride : -((stride - 1 - offset) / stride);
    phase = offset - shift * stride;
  }
  int shift, phase;
};

// The phases of one channel of an image as the taps of some output rows see them, with zeros where that is padding.
struct TapPlanes {
  TapPlanes() = default;
  TapPlanes(const ConvShape& s, int output_rows);
  int top = 0, left = 0;  // places above and left of what the first output sees at shift 0
  int rows = 0, pitch = 0;
  std::size_t map = 0;    // floats of a phase
  std::size_t image = 0;  // of all
};

}  // namespace ebnet
