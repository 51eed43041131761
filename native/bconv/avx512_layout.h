// Layouts of the AVX-512 kernel (avx512.cpp has the idea).
#pragma once
#include <cstddef>
#include <cstdint>

#include "bconv/bconv.h"

namespace ebnet::avx512 {

inline constexpr int kLanes = 16;      // output channels in one vector of 32-bit counts
inline constexpr int kMaxBlocks = 2;   // blocks of kLanes output channels computed together
inline constexpr int kTilePixels = 8;  // pixels computed together

// 32-bit words of one group at one tap.
inline int words32(const ConvShape& shape) { return (shape.in_per_group() + 31) / 32; }
// Blocks of kLanes output channels in one group.
inline int blocks(const ConvShape& shape) { return (shape.out_per_group() + kLanes - 1) / kLanes; }

void run(const ConvTask& task);

}  // namespace ebnet::avx512
