// The training of expert convolutions on the CPU: fp32, tensors as torch lays them out.
//
//   x     [batch][in][h][w]                          dy  [batch][out][out h][out w]
//   theta [experts][out][in / groups][kh][kw]        the latent weights; `chosen` [batch] names each sample's expert
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/shape.h"

namespace ebnet {

// The derivative of the weights' sign that stands in for the real one: 1 (real weights, or the identity), 1 where
// abs(theta) <= 1 else 0, or 2 - 2 abs(theta) there.
enum class Estimator { one, clip, polynomial };

// With G_b the gradient of sample b's weights alone, e its expert and M_e the estimator's derivative at theta_e:
//   dtheta[e]   = M_e * sum of G_b over the samples of e        (zero for an expert without samples)
//   dgate[b][i] = <M_e * G_b, theta_i> for every expert i
// Every number of both is written. For one level and number of threads the result is always the same.
struct SampleGradients {
  ConvShape shape;
  int batch = 0, experts = 1;
  Estimator estimator = Estimator::one;
  const float *x = nullptr, *dy = nullptr, *theta = nullptr;
  const std::int64_t* chosen = nullptr;
  float *dtheta = nullptr, *dgate = nullptr;
};

void sample_gradients(const SampleGradients& task, int threads, DenseLevel level);

// Each sample convolved with its expert, or with its signs (+1 where theta >= 0) where `binary`.
// forward: from = x, to = y; input_gradient: from = dy, to = dx. Every number of `to` is written; a sample's result
// depends neither on the others nor on the number of threads.
struct ExpertConv {
  ConvShape shape;
  int batch = 0, experts = 1;
  bool binary = false;
  const float *from = nullptr, *theta = nullptr;
  const std::int64_t* chosen = nullptr;
  float* to = nullptr;
};

void expert_forward(const ExpertConv& task, int threads, DenseLevel level);
void expert_input_gradient(const ExpertConv& task, int threads, DenseLevel level);

}  // namespace ebnet
