// Binary convolution: the interface between the kernels (one file per instruction set) and the engine.
//
// A kernel computes, for one sample and a range of output rows, the exact integer dot products
//   dot[y, x, o] = sum over taps (ky, kx) inside the image and channels c of o's group:  sign(a) * sign(w)
// (a tap that falls into the zero padding contributes 0), and hands each tile of them, while it is in L1, to the
// fused epilogue:
//   r = prelu(float(dot) * scale[o] + shift[o]) + skip + after[o];  stream[y, x, o] = r;
//   bits[y, x, o] = (bn_scale[o] * r + bn_shift[o] >= 0);  row_sums[y, o] = sum over x of r
// or, with act_last, r = prelu(float(dot) * scale[o] + shift[o] + skip) + after[o].
// bits and row_sums are made of r itself, before it is rounded to a narrow stream's type.
// Products and sums are separate roundings (no FMA contraction) and row sums run over x in ascending order, so every
// kernel, row split and thread count gives the same floats bit for bit.
//
// Kernels are reentrant, allocate nothing in `run` and use no globals but constants.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/cpu.h"
#include "base/shape.h"
#include "base/stream.h"
#include "bits/planes.h"

namespace ebnet {

// The weights of one expert in a kernel's own layout (still one bit per weight, except in the reference).
struct PackedWeights {
  AlignedBytes data;
};

// Everything that follows the dot products. Pointers are to the whole sample (row 0), channels are the conv's outputs.
// Null pointers leave the step out: no scale means 1, no slope means no PReLU, no shift, skip or after adds nothing, no
// stream, bits, row_sums or dots writes nothing.
struct Epilogue {
  const float* scale = nullptr;     // [out channels] the layer's scale times the sample's data-driven scale
  const float* shift = nullptr;     // [out channels]
  const float* slope = nullptr;     // [out channels] PReLU
  bool act_last = false;            // PReLU after the skip is added
  const float* after = nullptr;     // [out channels]
  const void* skip = nullptr;       // [pixel][skip_stride]; may be equal to `stream` (updated in place), type and all
  std::size_t skip_stride = 0;      // values from pixel to pixel, >= out channels
  StreamType skip_type = StreamType::fp32;
  void* stream = nullptr;           // [pixel][stream_stride]
  std::size_t stream_stride = 0;
  StreamType stream_type = StreamType::fp32;
  const float* bn_scale = nullptr;  // [out channels] the next unit's batch norm; needed where `bits` is set
  const float* bn_shift = nullptr;
  std::uint64_t* bits = nullptr;    // [pixel][next group][words of 64 bits], unused bits are written as 0
  int bits_per_group = 0;           // channels per group of the conv that reads `bits`; divides out channels
  float* row_sums = nullptr;        // [out row][out channels]; overwritten for the rows that are run
  std::int32_t* dots = nullptr;     // [pixel][out channels] the dot products themselves, for tests and verification

  // Whether every step of the paper's unit is wanted and no other, as in the body of its networks.
  EBNET_INLINE bool is_papers_unit() const {
    return scale != nullptr && slope != nullptr && skip != nullptr && stream != nullptr && bits != nullptr &&
           row_sums != nullptr && dots == nullptr && shift == nullptr && after == nullptr && !act_last;
  }
};

struct MemoryRange {
  const std::uint8_t* data;
  std::size_t bytes;
};

// One call of a kernel: output rows [row_begin, row_end) of one sample.
struct ConvTask {
  const ConvShape* shape = nullptr;
  const PackedWeights* weights = nullptr;  // of the chosen expert, made by the same kernel's `prepare` for this shape
  const std::uint64_t* input = nullptr;    // [in pixel][group][words], unused bits 0
  const Epilogue* epilogue = nullptr;
  int row_begin = 0, row_end = 0;
  void* scratch = nullptr;                 // scratch_bytes(shape) bytes, 64-byte aligned, private to the calling thread
  const MemoryRange* ahead = nullptr;      // what later layers will read; a kernel may ask for it in time
  int ahead_count = 0;
};

struct Kernel {
  const char* name;  // e.g. "avx2-pair-lut-4"
  Isa isa;
  bool (*supports)(const ConvShape& shape);
  PackedWeights (*prepare)(const std::uint8_t* canonical, const ConvShape& shape);
  std::size_t (*scratch_bytes)(const ConvShape& shape);
  void (*run)(const ConvTask& task);
};

// Every kernel compiled into this build, whether or not this CPU can run it, from worst to best.
const std::vector<const Kernel*>& all_kernels();

// Those of one instruction set (with AMX, of AVX-512 too) that support a shape, from worst to best; where it has none,
// those of the next one below that has (the portable one supports all). They differ in speed only.
std::vector<const Kernel*> kernels_for(const ConvShape& shape, Isa isa,
                                       const std::vector<const Kernel*>& kernels = all_kernels());
// The last of them.
const Kernel& select(const ConvShape& shape, Isa isa);

}  // namespace ebnet
