// What one op costs for one image, counted as values read and written: of reals one by one, of bits in words of 64. A
// kernel that shares a read among several results does better, none does worse.
#pragma once
#include "engine/plan.h"

namespace ebnet {

double work_of(const Op& op, const OpPlan& planned, const ValuePlan& input, const ValuePlan& output);

// Bytes of all of a binary layer's experts in a kernel's layout, about: whole words for each group and tap.
std::size_t laid_out_bytes(const Op& op, const ConvShape& shape);

}  // namespace ebnet
