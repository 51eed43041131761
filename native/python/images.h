// ebnet._native.train's batches of images.
#pragma once
#include <nanobind/nanobind.h>

namespace ebnet {
void bind_images(nanobind::module_& train);
}
