#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {

// Adds the class `Engine` and the table of error numbers.
void bind_engine(nanobind::module_& module);

}  // namespace ebnet
