#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {

// Adds the int8 kernels to the submodule `kernels`.
void bind_int8(nanobind::module_& kernels);

}  // namespace ebnet
