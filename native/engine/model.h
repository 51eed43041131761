// A packed file, read, verified and laid out for this CPU's kernels: everything that does not depend on the input size.
#pragma once
#include <string>
#include <vector>

#include "bconv/bconv.h"
#include "dense/dense.h"
#include "engine/limits.h"
#include "engine/program.h"
#include "engine/source.h"

namespace ebnet {

// How an image becomes the network's input: the central `crop / resize` of the shorter side, scaled to size x size,
// then (value / 255 - mean) / std per channel.
struct Preprocessing {
  int size = 0, resize = 0, crop = 0;
  std::vector<float> mean, std;
};

struct BinaryWeights {
  const Kernel* kernel = nullptr;
  std::vector<PackedWeights> experts;
  std::vector<float> norm_scale, norm_shift;  // batch norm before the sign, folded
  std::vector<float> scale;                   // per output channel
  std::vector<float> slope;                   // PReLU; empty for none
  std::vector<float> gate_weight, gate_bias;  // empty for one expert
  std::vector<float> squeeze, excite;         // data-driven scaling; empty for none
};

struct LinearWeights {
  std::vector<float> weight, bias, slope;
};

// One per op; only the member of the op's kind is filled.
struct OpWeights {
  BinaryWeights binary;
  DenseConv conv;
  LinearWeights linear;
};

struct Model {
  Program program;
  std::vector<OpWeights> weights;
  Preprocessing preprocessing;
  std::vector<std::string> labels;  // one per class, or none
  Isa isa = Isa::reference;
  DenseLevel dense_level = DenseLevel::scalar;
  // The metadata as written, for people to look at.
  std::string program_text, preprocessing_text, network_text;
  std::uint64_t file_bytes = 0;
};

Model read_model(const Source& source, const Limits& limits);

}  // namespace ebnet
