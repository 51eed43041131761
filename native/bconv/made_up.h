// A layer of made-up data: what kernels are timed and proved on.
#pragma once
#include <cstdint>
#include <vector>

#include "base/shape.h"

namespace ebnet {

struct MadeUpLayer {
  std::vector<std::uint8_t> canonical;  // of one expert
  std::vector<std::uint64_t> input;     // a bit plane
};

// The same for a shape every time; bits that are not used are 0 as everywhere.
MadeUpLayer made_up_layer(const ConvShape& shape);

}  // namespace ebnet
