// Adam on some numbers of one tensor, in the arithmetic of torch.optim.Adam:
//
//   g += decay * p
//   m = beta1 * m + (1 - beta1) * g          v = beta2 * v + (1 - beta2) * g * g
//   p -= rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
#pragma once
#include "base/lanes.h"
#include "train/adam.h"

namespace ebnet {
namespace {

void adam_part(const AdamTensor& tensor, const AdamNumbers& n, size_t begin, size_t end) {
  float* __restrict parameter = tensor.parameter;
  const float* __restrict gradient = tensor.gradient;
  float* __restrict first = tensor.first;
  float* __restrict second = tensor.second;
  for (size_t i = begin; i < end; ++i) {
    const float g = gradient[i] + n.decay * parameter[i];
    const float m = n.beta1 * first[i] + n.one_minus_beta1 * g;
    const float v = n.beta2 * second[i] + n.one_minus_beta2 * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] -= n.step_size * m / (__builtin_sqrtf(v) / n.root_correction + n.eps);
  }
}

}  // namespace
}  // namespace ebnet
