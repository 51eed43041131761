// The binding: shapes are checked here, work is done in the core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "bits/pack.h"
#include "python/kernels.h"

namespace nb = nanobind;

namespace {

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;

Words pack_signs(const Floats& values) {
  const std::size_t count = values.shape(0);
  const std::size_t words = (count + 63) / 64;
  auto storage = std::make_unique<std::uint64_t[]>(words);
  ebnet::pack_signs(values.data(), count, storage.get());
  std::uint64_t* data = storage.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::uint64_t*>(p); });
  return Words(data, {words}, owner);
}

}  // namespace

NB_MODULE(_native, module) {
  module.doc() = "ebnet's native core";
  module.def("pack_signs", &pack_signs, nb::arg("values"), "Pack the signs of a float vector into 64-bit words.");
  ebnet::bind_kernels(module);
}
