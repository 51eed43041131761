#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {

// Adds the submodule `train`: what training on the CPU computes natively, on torch's or numpy's arrays.
void bind_train(nanobind::module_& parent);

}  // namespace ebnet
