// Where every value, bit plane and sum of one image lives, for one input size: decided once, with buffers shared by
// values that are never alive together, branches written straight into their concatenation, and the residual stream
// updated in place.
#pragma once
#include <cstddef>
#include <vector>

#include "engine/kernel_choice.h"
#include "engine/model.h"

namespace ebnet {

// A value of one image. Vectors are maps of one pixel.
struct ValuePlan {
  int height = 1, width = 1, channels = 0;
  std::size_t stride = 0;  // values from pixel to pixel
  std::size_t offset = 0;  // bytes from the start of the image's arena
  StreamType type = StreamType::fp32;
  bool bytes = false;  // in place of reals, because all its readers want them so
  ByteCode code;       // of these; the image's are its pixels

  std::size_t value_width() const { return bytes ? 1 : value_bytes(type); }
  std::size_t pixels() const { return static_cast<std::size_t>(height) * static_cast<std::size_t>(width); }
};

struct OpPlan {
  ConvShape conv;   // Conv and Binary
  PoolShape pool;   // MaxPool and AvgPool
  double macs = 0;  // multiply-accumulates of one image
  double work = 0;  // see work.h

  // Binary: how it runs at this size.
  const Kernel* kernel = nullptr;
  ExpertLayout* experts = nullptr;  // the model's, for that kernel
  // Binary: byte offsets into the image's arena. The sums are [row][channel] of the input value.
  std::size_t bits = 0, sums = 0, mean = 0, hidden = 0, gate = 0, scale = 0;
  std::size_t bits_words = 0;    // 64-bit words of the whole plane
  bool needs_sums = false;       // it has a gate or data-driven scaling
  bool binarizes_image = false;  // it reads the image itself, and makes its bits first

  // With int8 weights: where the bytes of its input are, made by itself where the value is not kept as bytes.
  bool makes_bytes = false;
  std::size_t bytes = 0;

  // Any op: whose bits and sums it makes of its value, so that no binary op needs the value itself.
  int emits_for = -1;              // in its epilogue (Binary), or -1
  std::vector<int> binarizes_for;  // after it has run

  std::vector<bool> copies;  // Concat: whether input i has to be copied, not having been written in place
};

struct Plan {
  int height = 0, width = 0;
  std::vector<ValuePlan> values;
  std::vector<OpPlan> ops;
  std::size_t arena_bytes = 0;    // of one image
  std::size_t scratch_bytes = 0;  // of one thread: for kernels, and an expert that is laid out
};

// `stream` is the type of the residual stream between binary units; all other values are fp32. `choice` is asked for
// every binary op's kernel once all else is known to be within the limits. Throws InputSizeInvalid, SpatialMismatch or
// PlanTooLarge. The model must outlive the plan.
Plan make_plan(const Model& model, int height, int width, StreamType stream, const Limits& limits,
               KernelChoice& choice);

}  // namespace ebnet
