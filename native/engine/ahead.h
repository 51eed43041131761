// Which weights of real layers each binary op asks the memory for, while it computes.
#pragma once
#include <vector>

#include "engine/model.h"

namespace ebnet {

inline constexpr std::size_t kMostAhead = 8;  // pieces of weights that one op asks for

// Per op. A layer's weights are shared out among the binary ops before it: those of a classifier are more than the last
// of them could bring in its time.
std::vector<std::vector<MemoryRange>> real_weights_ahead(const Program& program, const std::vector<OpWeights>& weights);

}  // namespace ebnet
