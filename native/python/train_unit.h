#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {

void bind_train_unit(nanobind::module_& m);

}  // namespace ebnet
