// One table of functions per level, each filled in its own file with its own compiler flags.
#pragma once
#include "base/cpu.h"
#include "train/blocks.h"
#include "train/expert_conv.h"

namespace ebnet {

struct TrainKernels {
  int lanes;
  // Block `block` of the weights: its part of dtheta is written, its part of each dgate[b][i] added to `scores`.
  void (*sample_gradients)(const SampleGradients& task, const WeightBlocks& blocks, const SamplesByExpert& samples,
                           int block, float* scratch, float* scores);
  // The samples order[first] .. order[last - 1], each with its own expert.
  void (*forward)(const ExpertConv& task, const WeightBlocks& blocks, const SamplesByExpert& samples, int first,
                  int last, float* scratch);
  void (*input_gradient)(const ExpertConv& task, const WeightBlocks& blocks, const SamplesByExpert& samples, int first,
                         int last, float* scratch);
};

extern const TrainKernels kTrainPortable;
#ifdef EBNET_X86_64
extern const TrainKernels kTrainAvx2;
extern const TrainKernels kTrainAvx512;
#endif

}  // namespace ebnet
