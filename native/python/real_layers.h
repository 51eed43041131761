// ebnet._native.train's real layers.
#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {
void bind_real_layers(nanobind::module_& train);
}
