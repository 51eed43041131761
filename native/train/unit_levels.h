// The unit's kernels: one table per level, each filled in its own file with its own compiler flags.
#pragma once
#include "train/sign_sums.h"
#include "train/unit.h"

namespace ebnet {

// The samples of expert e are order[begin[e]] .. order[begin[e + 1] - 1], in the order of the batch.
struct SamplesByExpert {
  const int* order = nullptr;
  const int* begin = nullptr;
};

// Sums over the positions of one sample, and what follows from them sample by sample; [batch][..].
struct UnitSums {
  float *slope = nullptr, *scale = nullptr, *bias = nullptr;  // [out]: dy z where z <= 0, dz c, dz
  float *raw = nullptr, *raw_hat = nullptr;                   // [in]: dn and dn h, without the part of the means
  float* dots = nullptr;                                      // [experts]: <G_b, theta_i>
  float *dlogits = nullptr, *dexcited = nullptr, *dhidden = nullptr, *dmean = nullptr;
};

struct UnitKernels {
  std::size_t (*forward_floats)(const UnitLayer& layer);
  std::size_t (*backward_floats)(const UnitLayer& layer);
  std::size_t (*direction_floats)(const UnitLayer& layer);   // of one expert
  std::size_t (*direction_scratch)(const UnitLayer& layer);

  // Of each plane: mean, and sum of squared distances from it.
  void (*moments)(const float* x, std::size_t planes, std::size_t plane, float* mean, float* squares);
  // Gate and scaling of the samples [first, last); false at NaN or infinity. scratch: [in].
  bool (*choose)(const UnitLayer& layer, const UnitKept& kept, int first, int last, std::int64_t* chosen,
                 float* scratch);
  // The samples order[first] .. order[last - 1].
  void (*forward)(const UnitLayer& layer, const UnitForward& io, const UnitKept& kept, const SamplesByExpert& samples,
                  int first, int last, SignSums sign_sums, float* scratch);
  SignSums sign_sums;

  // One group of one expert's weights in the order of the gradient's tiles; not asked for where there are no floats for it.
  void (*pack_directions)(const UnitLayer& layer, int expert, int group, float* scratch, float* directions);
  // Samples of an expert that must go to `backward` together, counted from its first.
  int (*scored_together)(const UnitLayer& layer);
  // The samples order[first] .. order[last - 1]: dx holds dn without the part of the means. The weight gradient of the
  // expert of order[first] goes to `shared` instead of dtheta if given.
  void (*backward)(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const UnitSums& sums,
                   const SamplesByExpert& samples, int first, int last, const float* directions, float* shared,
                   float* scratch);
  // From the sums of samples [first, last): gradients of gate and scaling before their weights, and of the means.
  void (*means_gradient)(const UnitLayer& layer, const UnitKept& kept, const UnitSums& sums, int first, int last);
  // to[row][column] = sum over the batch of a[b][row] * b[b][column], rows [first, last).
  void (*outer)(const float* a, const float* b, int batch, int rows, int columns, int first, int last, float* to);
  // dx of samples [first, last) from dn: dx = k dn + offset[b] + tilt (x - mean), all per channel, plus dy where given.
  void (*finish)(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const float* slope,
                 const float* tilt, const float* offset, int first, int last);
};

extern const UnitKernels kUnitPortable;
#ifdef EBNET_X86_64
extern const UnitKernels kUnitAvx2;
extern const UnitKernels kUnitAvx512;
#endif

}  // namespace ebnet
