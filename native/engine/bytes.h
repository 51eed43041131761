// Which values are kept as bytes, and what these stand for.
#pragma once
#include <vector>

#include "engine/plan.h"

namespace ebnet {

// A value that ops with int8 weights alone read, all by one code, is kept as bytes. On the way from its maker to them it
// may pass maxima and concatenations, which then work on bytes too: their order is that of the reals.
void choose_bytes(const Program& program, std::vector<ValuePlan>& values);

}  // namespace ebnet
