// The binary unit's kernels on 16 lanes: AVX-512F.
#define EBNET_DENSE_LANES 16
#include "train/unit_backward.h"
#include "train/unit_gate.h"

namespace ebnet {

const UnitKernels kUnitAvx512 = {forward_floats, backward_floats, direction_floats, direction_scratch, moments,
                                 choose, forward, run_sign_sums, pack_directions, scored_together, backward,
                                 means_gradient, outer, finish};

}  // namespace ebnet
