#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {

// Adds the submodule `kernels`: every kernel by name, for tests and benchmarks.
void bind_kernels(nanobind::module_& parent);

}  // namespace ebnet
