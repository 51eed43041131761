// A packed file, read and verified: everything that does not depend on the input size. It does not change once it is
// read (experts are laid out behind a lock of their own), so that any number of sessions and threads share it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/half.h"
#include "bconv/bconv.h"
#include "dense/dense.h"
#include "dense/int8.h"
#include "engine/experts.h"
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

// The weights of a linear map, [out][in], as wide as the file has them: one of the two is filled.
struct Matrix {
  std::vector<float> reals;
  std::vector<Half> halves;
};

struct BinaryWeights {
  Experts experts;
  std::vector<float> norm_scale, norm_shift;  // batch norm before the sign, folded
  std::vector<float> scale;                   // per output channel, for all experts or for one after another
  std::vector<float> shift, after;            // before and after the activation; empty for none
  std::vector<float> slope;                   // PReLU; empty for none
  Matrix gate_weight;                         // empty for one expert
  std::vector<float> gate_bias;
  Matrix squeeze, excite;                     // data-driven scaling; empty for none
};

struct LinearWeights {
  Matrix weight;
  std::vector<float> bias, slope;
};

// A convolution or linear map with int8 weights, and how reals become the bytes it reads.
struct Int8Weights {
  Int8Conv conv;
  std::vector<float> inverse, zero;  // per input channel, see to_bytes
};

// One per op; only the member of the op's kind is filled.
struct OpWeights {
  BinaryWeights binary;
  DenseConv conv;
  LinearWeights linear;
  Int8Weights int8;
};

struct Model {
  Program program;
  std::vector<OpWeights> weights;
  std::vector<std::vector<MemoryRange>> ahead;  // per op, see ahead.h
  Preprocessing preprocessing;
  std::vector<std::string> labels;  // one per class, or none
  Isa isa = Isa::reference;
  DenseLevel dense_level = DenseLevel::scalar;
  Int8Level int8_level = Int8Level::scalar;
  // The metadata as written, for people to look at.
  std::string program_text, preprocessing_text, network_text;
  std::uint64_t file_bytes = 0;
};

// The source is kept: experts are read from it when they are first chosen.
Model read_model(const std::shared_ptr<const Source>& source, const Limits& limits);

}  // namespace ebnet
