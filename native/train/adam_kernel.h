// Adam on some numbers of one tensor, in the arithmetic of torch.optim.Adam:
//
//   g += share * (sum of the experts' g) + decay * p
//   m = beta1 * m + (1 - beta1) * g          v = beta2 * v + (1 - beta2) * g * g
//   p -= rate / (1 - beta1^t) * m / (sqrt(v) / c + eps),  c = sqrt(1 - beta2^t)
//
// The last line is computed with both sides of its fraction times c, which saves a division.
#pragma once
#include "base/lanes.h"
#include "train/adam.h"

namespace ebnet {
namespace {

constexpr size_t kSharedNumbers = 32768;  // summed up while they stay in the second cache, and a stream of memory runs on

template <bool kShares>
void adam_range(const AdamTensor& tensor, const AdamNumbers& n, size_t begin, size_t end,
                const float* __restrict shared) {
  float* __restrict parameter = tensor.parameter;
  const float* __restrict gradient = tensor.gradient;
  float* __restrict first = tensor.first;
  float* __restrict second = tensor.second;
  for (size_t i = begin; i < end; ++i) {
    const float own = kShares ? gradient[i] + shared[i - begin] : gradient[i];
    const float g = own + n.decay * parameter[i];
    const float m = n.beta1 * first[i] + n.one_minus_beta1 * g;
    const float v = n.beta2 * second[i] + n.one_minus_beta2 * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] -= n.step_size * m / (__builtin_sqrtf(v) + n.eps);
  }
}

// [begin, end) of each expert's numbers.
void adam_part(const AdamTensor& tensor, const AdamNumbers& n, size_t begin, size_t end) {
  if (tensor.experts == 1) return adam_range<false>(tensor, n, begin, end, nullptr);
  const size_t experts = size(tensor.experts), each = tensor.count / experts;
  float shared[kSharedNumbers];
  for (; begin < end; begin += kSharedNumbers) {
    const size_t count = end - begin < kSharedNumbers ? end - begin : kSharedNumbers;
    std::memcpy(shared, tensor.gradient + begin, count * sizeof(float));
    for (size_t e = 1; e < experts; ++e) {
      for (size_t i = 0; i < count; ++i) shared[i] += tensor.gradient[e * each + begin + i];
    }
    for (size_t i = 0; i < count; ++i) shared[i] *= tensor.share;
    for (size_t e = 0; e < experts; ++e) {
      adam_range<true>(tensor, n, e * each + begin, e * each + begin + count, shared);
    }
  }
}

}  // namespace
}  // namespace ebnet
