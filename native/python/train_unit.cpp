// ebnet._native.train.Unit: the binary unit on torch's own memory.
//
// Tensors come as addresses: taking one as an array costs microseconds, and a unit has about thirty. Their types,
// shapes and order in memory are checked by the one caller, ebnet.nn.unit.
#include "python/train_unit.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <array>

#include "python/arrays.h"
#include "train/unit.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

template <typename T = float>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

DenseLevel level_or_best(const std::string& level) {
  return level.empty() ? requested_dense_level() : level_of(level);
}

Estimator estimator_of(int number) {
  require(number >= 0 && number <= 2, "no such estimator");
  return static_cast<Estimator>(number);
}

// numbers: batch, in, h, w, out, kernel, stride, padding, dilation (each down and right), groups, experts, hidden
using Numbers = std::array<int, 16>;
// binary input, binary weights, training, sigmoid gate, skips
using Flags = std::array<bool, 5>;
// gamma, beta, running mean, running variance, theta, scale, bias, gate, gate's bias, squeeze, excite, slope
using Parameters = std::array<std::uintptr_t, 12>;

UnitLayer layer_of(const Numbers& n, const Flags& flags, int estimator, const std::array<double, 3>& reals,
                   const Parameters& p) {
  UnitLayer layer;
  layer.batch = n[0];
  layer.shape = ConvShape{n[1], n[4], n[13], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[2], n[3]};
  layer.experts = n[14];
  layer.hidden = n[15];
  require(layer.batch > 0 && layer.experts > 0 && layer.hidden >= 0 && layer.shape.valid(), "no such unit");
  layer.binary_input = flags[0];
  layer.binary_weights = flags[1];
  layer.training = flags[2];
  layer.sigmoid = flags[3];
  layer.skips = flags[4];
  layer.input_estimator = estimator_of(estimator);
  layer.eps = reals[0];
  layer.momentum = reals[1];
  layer.temperature = static_cast<float>(reals[2]);
  layer.gamma = at(p[0]);
  layer.beta = at(p[1]);
  layer.running_mean = at(p[2]);
  layer.running_var = at(p[3]);
  layer.theta = at(p[4]);
  layer.scale = at(p[5]);
  layer.bias = at(p[6]);
  layer.gate = at(p[7]);
  layer.gate_bias = at(p[8]);
  layer.squeeze = at(p[9]);
  layer.excite = at(p[10]);
  layer.slope = at(p[11]);
  return layer;
}

// x, skip, y, conv, kept, chosen
bool run_forward(const UnitLayer& layer, const std::array<std::uintptr_t, 6>& tensors, int threads,
                 const std::string& level) {
  UnitForward io;
  io.x = at(tensors[0]);
  io.skip = at(tensors[1]);
  io.y = at(tensors[2]);
  io.conv = at<void>(tensors[3]);
  io.kept = at(tensors[4]);
  io.chosen = at<std::int64_t>(tensors[5]);
  require(threads > 0, "at least one thread");
  const DenseLevel chosen = level_or_best(level);
  const nb::gil_scoped_release release;
  return unit_forward(layer, io, threads, chosen);
}

// x, dy, conv, kept, chosen, dx, then the gradients of the parameters from gamma on, without the running statistics
void run_backward(const UnitLayer& layer, const std::array<std::uintptr_t, 16>& tensors, bool skip_is_x, int threads,
                  const std::string& level) {
  UnitBackward io;
  io.skip_is_x = skip_is_x;
  io.x = at(tensors[0]);
  io.dy = at(tensors[1]);
  io.conv = at<void>(tensors[2]);
  io.kept = at(tensors[3]);
  io.chosen = at<std::int64_t>(tensors[4]);
  io.dx = at(tensors[5]);
  io.dgamma = at(tensors[6]);
  io.dbeta = at(tensors[7]);
  io.dtheta = at(tensors[8]);
  io.dscale = at(tensors[9]);
  io.dbias = at(tensors[10]);
  io.dgate = at(tensors[11]);
  io.dgate_bias = at(tensors[12]);
  io.dsqueeze = at(tensors[13]);
  io.dexcite = at(tensors[14]);
  io.dslope = at(tensors[15]);
  require(threads > 0, "at least one thread");
  const DenseLevel chosen = level_or_best(level);
  const nb::gil_scoped_release release;
  unit_backward(layer, io, threads, chosen);
}

}  // namespace

void bind_train_unit(nb::module_& m) {
  nb::class_<UnitLayer>(m, "Unit", "A binary unit: what it is, and where its parameters lie.")
      .def("__init__",
           [](UnitLayer* self, const Numbers& numbers, const Flags& flags, int estimator,
              const std::array<double, 3>& reals, const Parameters& parameters) {
             new (self) UnitLayer(layer_of(numbers, flags, estimator, reals, parameters));
           })
      .def_prop_ro("kept", [](const UnitLayer& layer) { return unit_kept_floats(layer); }, "Floats kept for backward.")
      .def_prop_ro("conv", [](const UnitLayer& layer) { return unit_conv_count(layer); }, "Numbers of the convolution.")
      .def_prop_ro("counts", &UnitLayer::counts, "Whether these are int16.")
      .def_prop_ro("out_size", [](const UnitLayer& l) { return std::array<int, 2>{l.shape.out_h(), l.shape.out_w()}; })
      .def("forward", &run_forward, nb::arg("tensors"), nb::arg("threads"), nb::arg("level") = "",
           "Fill y and what is kept; False where the gate's means hold NaN or infinity.")
      .def("backward", &run_backward, nb::arg("tensors"), nb::arg("skip_is_x"), nb::arg("threads"),
           nb::arg("level") = "", "Fill the gradients.");
}

}  // namespace ebnet
