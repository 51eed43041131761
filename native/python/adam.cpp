// ebnet._native.train's optimizer, on torch's own memory; tensors come as addresses, as in real_layers.cpp.
#include "python/adam.h"

#include <nanobind/stl/string.h>

#include <vector>

#include "python/arrays.h"
#include "train/adam.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

// addresses [tensors, 7]: parameter, gradient, first, second, step, the count of numbers and of experts; rates [tensors, 3]:
// learning rate, weight decay and the share of all experts' gradients that each learns from.
void run_adam(const In<std::int64_t>& addresses, const In<double>& rates, double beta1, double beta2, double eps,
              int threads, const std::string& level) {
  require(addresses.ndim() == 2 && addresses.shape(1) == 7 && rates.ndim() == 2 && rates.shape(1) == 3 &&
              rates.shape(0) == addresses.shape(0) && threads > 0,
          "expected addresses [tensors, 7], rates [tensors, 3] and a thread");
  std::vector<AdamTensor> tensors(addresses.shape(0));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t* from = addresses.data() + 7 * i;
    const double* rate = rates.data() + 3 * i;
    require(from[6] > 0 && from[5] % from[6] == 0, "expected as many numbers of each expert");
    const auto floats = [&](int which) { return reinterpret_cast<float*>(static_cast<std::uintptr_t>(from[which])); };
    tensors[i] = {floats(0),         floats(1), floats(2), floats(3), floats(4), static_cast<std::size_t>(from[5]),
                  rate[0],           rate[1],   rate[2] == 0.0 ? 1 : static_cast<int>(from[6]), static_cast<float>(rate[2])};
  }
  const DenseLevel at = level.empty() ? requested_dense_level() : level_of(level);
  const nb::gil_scoped_release release;
  adam(tensors.data(), static_cast<int>(tensors.size()), {beta1, beta2, eps}, threads, at);
}

}  // namespace

void bind_adam(nb::module_& m) {
  m.def("adam", &run_adam, nb::arg("addresses"), nb::arg("rates"), nb::arg("beta1"), nb::arg("beta2"), nb::arg("eps"),
        nb::arg("threads"), nb::arg("level") = "", "One step of all tensors.");
}

}  // namespace ebnet
