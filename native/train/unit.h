// The binary unit as one operation, forward and backward: fp32 on the CPU, tensors as torch lays them out.
//
//   h = (x - mean) rstd,  n = gamma h + beta           batch norm; without one h = n = x
//   m_b = mean of n_b over the positions               = gamma mean(h_b) + beta: what gate and scaling see
//   e(b) = argmax of gate m_b + gate_bias              the lowest index wins a tie
//   f_b  = sigmoid(excite relu(squeeze m_b))           data-driven scaling; without it 1
//   c_b  = sign(n_b) * theta_e(b)                      the expert convolution; sign and real are told apart below
//   y    = prelu(scale f_b c_b + bias) + skip
//
// The batch statistics are the only barrier of either direction. What lies between x and y never exists as a whole map
// but for c, which the backward pass needs: as whole numbers of 16 bits where both sides of the convolution are signs.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/inline.h"
#include "base/shape.h"

namespace ebnet {

// The derivative that stands in for that of a sign: 1 (or no sign at all), 1 where abs(v) <= 1 else 0, or 2 - 2 abs(v)
// there.
enum class Estimator { one, clip, polynomial };

// A null pointer is a part that the unit does not have.
struct UnitLayer {
  ConvShape shape;
  int batch = 1, experts = 1;
  bool binary_input = true, binary_weights = false;
  Estimator input_estimator = Estimator::clip;  // weights are clipped where they are binary

  const float *gamma = nullptr, *beta = nullptr;
  float *running_mean = nullptr, *running_var = nullptr;  // read without `training`, else moved by `momentum`
  bool training = true;
  double eps = 1e-5, momentum = 0.1;

  const float *theta = nullptr, *scale = nullptr, *bias = nullptr;  // theta [experts][out][in / groups][kh][kw]
  const float *gate = nullptr, *gate_bias = nullptr;                // [experts][in]
  bool sigmoid = false;                                             // the gate's gradient; else softmax
  float temperature = 1.0f;
  const float *squeeze = nullptr, *excite = nullptr;  // [hidden][in], [out][hidden]
  int hidden = 0;
  const float* slope = nullptr;
  bool skips = true;  // adds a skip: x itself where none is given

  EBNET_INLINE std::size_t in_plane() const {
    return static_cast<std::size_t>(shape.in_h) * static_cast<std::size_t>(shape.in_w);
  }
  EBNET_INLINE std::size_t out_plane() const {
    return static_cast<std::size_t>(shape.out_h()) * static_cast<std::size_t>(shape.out_w());
  }
  EBNET_INLINE bool means() const { return gate != nullptr || squeeze != nullptr; }
  // Sums of signs are whole numbers; 16 bits hold them.
  EBNET_INLINE bool counts() const {
    return binary_input && binary_weights && shape.taps() * shape.in_per_group() <= INT16_MAX;
  }
};

// What the forward pass leaves for the backward pass beside x and c.
struct UnitKept {
  float *mean = nullptr, *rstd = nullptr;       // [in]
  float* hat_mean = nullptr;                    // [batch][in]: mean of h
  float* logits = nullptr;                      // [batch][experts]
  float *hidden = nullptr, *factor = nullptr;   // [batch][hidden], [batch][out]
};

std::size_t unit_kept_floats(const UnitLayer& layer);
// Numbers of c that are allocated: some behind the last are read, though not used.
std::size_t unit_conv_count(const UnitLayer& layer);

struct UnitForward {
  const float *x = nullptr, *skip = nullptr;
  float* y = nullptr;
  void* conv = nullptr;  // float or std::int16_t (`counts`); null where no backward pass follows
  float* kept = nullptr;
  std::int64_t* chosen = nullptr;  // [batch]
};

// False where the gate's means hold NaN or infinity: then nothing is chosen and y is not written.
bool unit_forward(const UnitLayer& layer, const UnitForward& io, int threads, DenseLevel level);

// Every gradient that is given is written whole. The gradient of a skip is dy itself; dx holds it already where
// the skip was x.
struct UnitBackward {
  const float *x = nullptr, *dy = nullptr;
  bool skip_is_x = true;
  const void* conv = nullptr;
  const float* kept = nullptr;
  const std::int64_t* chosen = nullptr;
  float *dx = nullptr, *dgamma = nullptr, *dbeta = nullptr, *dtheta = nullptr, *dscale = nullptr, *dbias = nullptr;
  float *dgate = nullptr, *dgate_bias = nullptr, *dsqueeze = nullptr, *dexcite = nullptr, *dslope = nullptr;
};

void unit_backward(const UnitLayer& layer, const UnitBackward& io, int threads, DenseLevel level);

}  // namespace ebnet
