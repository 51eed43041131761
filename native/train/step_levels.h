// What a training step does beside the binary units, per level: each table is filled in its own file with its own
// compiler flags.
#pragma once
#include "base/cpu.h"
#include "train/adam.h"
#include "train/max_pool.h"
#include "train/real_layer.h"

namespace ebnet {

// Per output channel: sums of a tile, or of all. Forward: the mean and the sum of squared distances from it. Backward,
// with u the normalised value before the activation: du, du * (z - mean) / std, and the slope's gradient.
struct ChannelSums {
  double first = 0, second = 0, third = 0;
};

// u = scale * z + shift.
struct Affine {
  const float *scale, *shift;
};

struct StepKernels {
  // Convolve tile `tile` into z [out][width] and take its moments, unless `moments` is null.
  void (*convolve)(const RealLayer& layer, const RealTiles& tiles, int tile, float* z, ChannelSums* moments,
                   float* scratch);
  // y of a tile from its z.
  void (*activate)(const RealLayer& layer, const RealTiles& tiles, int tile, const float* z, Affine affine,
                   float* scratch);
  void (*sum_gradients)(const RealLayer& layer, const RealTiles& tiles, int tile, const float* z, Affine affine,
                        ChannelSums* sums, float* scratch);
  // `sums` are those of all tiles over their positions, or null outside training; adds to dweight.
  void (*gradients)(const RealLayer& layer, const RealTiles& tiles, int tile, const float* z, Affine affine,
                    const ChannelSums* sums, float* dweight, float* scratch);
  void (*max_pool)(const MaxPool& task, const PoolPhases& phases, int plane, float* scratch);
  // The numbers [begin, end) of a tensor, or of each of its experts.
  void (*adam)(const AdamTensor& tensor, const AdamNumbers& numbers, std::size_t begin, std::size_t end);
};

const StepKernels& step_kernels(DenseLevel level);

extern const StepKernels kStepPortable;
#ifdef EBNET_X86_64
extern const StepKernels kStepAvx2;
extern const StepKernels kStepAvx512;
#endif

}  // namespace ebnet
