// Adam (Kingma & Ba 2015) over all parameters of a network in one call.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace ebnet {

// One parameter tensor: `step` counts its steps, and is moved by one. Of several experts' weights, one expert's behind the
// other's, each learns from its own gradient and from `share` of the sum of all.
struct AdamTensor {
  float* parameter;
  const float* gradient;
  float *first, *second;  // running means of the gradient and of its square
  float* step;
  std::size_t count;
  double rate;   // the learning rate
  double decay;  // weight decay, as an L2 term of the loss
  int experts = 1;
  float share = 0.0f;
};

struct AdamSettings {
  double beta1, beta2, eps;
};

// What one tensor's numbers are computed with: see adam_kernel.h.
struct AdamNumbers {
  float beta1, beta2, one_minus_beta1, one_minus_beta2, decay, step_size, eps;
};

// The result does not depend on the number of threads.
void adam(const AdamTensor* tensors, int count, const AdamSettings& settings, int threads, DenseLevel level);

}  // namespace ebnet
