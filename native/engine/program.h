// The program of a packed network: a flat list of fused ops, each making one value from earlier ones. Value 0 is the
// image, op i makes value i + 1, and the last value is the logits.
#pragma once
#include <string>
#include <vector>

#include "base/shape.h"
#include "dense/dense.h"
#include "dense/int8.h"
#include "engine/json.h"
#include "engine/limits.h"

namespace ebnet {

enum class OpKind { Conv, MaxPool, AvgPool, Concat, Sum, Binary, GlobalPool, Linear };

const char* op_kind_name(OpKind kind);

// The code of the image's pixels, in which every channel has a zero of its own: the pixel nearest to its mean.
inline constexpr ByteCode kPixels = {1.0f / 255.0f, -1};

struct Op {
  OpKind kind = OpKind::Conv;
  std::string name;         // prefix of the op's tensors; empty for ops that have none
  std::vector<int> inputs;  // value ids
  int skip = -1;            // Binary: the value added to the result, or -1
  int in_channels = 0, out_channels = 0;
  int kernel = 1, stride = 1, pad = 0, dilation = 1, groups = 1;
  bool ceil_mode = false;
  int experts = 1;
  int squeeze = 0;  // Binary: hidden width of the data-driven scaling, 0 for none
  Activation activation = Activation::none;
  // Binary, from version 3 on: a shift before the activation, one after it, the activation after the skip, and scales of
  // each expert's own.
  bool shift = false, after = false, act_last = false, expert_scales = false;
  std::vector<float> factors;  // Sum: of each input
  bool int8 = false;  // Conv and Linear: their weights
  ByteCode code;      // int8: of the bytes it reads

  ConvShape conv_shape(int in_h, int in_w) const;
  PoolShape pool_shape(int in_h, int in_w) const;
  // The smallest square the op's window fits into; weights are laid out for it, and serve every size.
  ConvShape smallest_conv_shape() const;
};

struct ValueType {
  bool is_map = true;  // [height][width][channels], else a vector of channels
  int channels = 0;
};

struct Program {
  int in_channels = 0;
  std::vector<Op> ops;
  std::vector<ValueType> values;  // ops.size() + 1

  int classes() const { return values.back().channels; }
  int binary_layers() const;
};

// The versions of the format: the second has int8 layers, the third also the binary units of other papers, the fourth
// also sums.
inline constexpr int kInt8Version = 2, kUnitsVersion = 3, kSumsVersion = 4;

// Reads and verifies all that does not depend on the input's size.
Program read_program(const json::Value& text, int in_channels, int version, const Limits& limits);

}  // namespace ebnet
