// The binary unit's kernels on 8 lanes: AVX2 and FMA.
#define EBNET_DENSE_LANES 8
#include "train/unit_backward.h"
#include "train/unit_gate.h"

namespace ebnet {

const UnitKernels kUnitAvx2 = {forward_floats, backward_floats, direction_floats, direction_scratch, moments,
                               choose, forward, run_sign_sums, pack_directions, scored_together, backward,
                               means_gradient, outer, finish};

}  // namespace ebnet
