// ebnet._native.train's optimizer.
#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {
void bind_adam(nanobind::module_& train);
}
