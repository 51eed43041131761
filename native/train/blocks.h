// How the work on a layer's weights is cut: plain numbers, shared by all levels.
#pragma once
#include "base/shape.h"

namespace ebnet {

// A block is `rows` output channels x `channels` input channels of one group, with all taps. Blocks share no weight, so
// threads that take different ones never meet.
struct WeightBlocks {
  int rows = 1, row_blocks = 1;
  int channels = 1, channel_blocks = 1;
  int map_rows = 1;  // rows of the output map that are worked on at a time
  int count = 1;     // groups * row blocks * channel blocks
};

// The samples of expert e are order[begin[e]] .. order[begin[e + 1] - 1], in the order of the batch.
struct SamplesByExpert {
  const int* order = nullptr;
  const int* begin = nullptr;
};

}  // namespace ebnet
