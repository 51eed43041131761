// How long a kernel takes for a shape on made-up data: what the choice of a kernel and the benchmarks rest on.
#pragma once
#include <vector>

#include "bconv/bconv.h"

namespace ebnet {

// As many of a layer's rows as have at most so many multiply-accumulates, all of them where possible.
ConvShape shortened(ConvShape shape, double macs);

class KernelTiming {
 public:
  KernelTiming(const Kernel& kernel, const ConvShape& shape);

  // Seconds of one run over the whole sample: with the fused epilogue, stream updated in place, or the dot products
  // alone, left in L1.
  double seconds(bool fused);

  // Multiply-accumulates of a run.
  double macs() const { return macs_of(shape_); }
  static double macs_of(const ConvShape& shape);

 private:
  const Kernel& kernel_;
  ConvShape shape_;
  PackedWeights weights_;
  AlignedBytes scratch_, input_, bits_, stream_, row_sums_;
  std::vector<float> parameters_;
};

}  // namespace ebnet
