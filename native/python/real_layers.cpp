// ebnet._native.train's real layers, on torch's own memory.
//
// Tensors come as addresses (0: none): handing over a tensor itself takes microseconds, as long as a narrow layer's whole
// work. ebnet.nn.real_layer, the only caller, checks type, shape and order before it takes an address.
#include "python/real_layers.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>

#include "python/arrays.h"
#include "train/max_pool.h"
#include "train/real_layer.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

using Address = std::uintptr_t;

float* floats(Address address) { return reinterpret_cast<float*>(address); }

Activation activation_of(const std::string& name) {
  if (name == "relu") return Activation::relu;
  if (name == "prelu") return Activation::prelu;
  require(name == "none", "no activation is called " + name);
  return Activation::none;
}

// geometry: batch, in, map height, map width, pool, out, kernel height, kernel width, stride, padding.
RealLayer layer_of(const std::array<int, 10>& geometry, const std::string& activation) {
  const auto [batch, in, map_h, map_w, pool, out, kernel_h, kernel_w, stride, padding] = geometry;
  RealLayer layer;
  require(batch > 0 && pool > 0 && map_h > 0 && map_w > 0, "empty batch or map");
  layer.batch = batch;
  layer.map_h = map_h;
  layer.map_w = map_w;
  layer.pool = pool;
  layer.shape = {in,      out, 1, kernel_h, kernel_w, stride, stride, padding, padding, 1, 1, (map_h + pool - 1) / pool,
                 (map_w + pool - 1) / pool};
  require(layer.shape.valid(), "the convolution does not fit its input");
  require(pool == 1 || (layer.shape.taps() == 1 && stride == 1 && padding == 0), "only a 1x1 convolution follows a pool");
  layer.activation = activation_of(activation);
  return layer;
}

DenseLevel level_or_best(const std::string& level) {
  return level.empty() ? requested_dense_level() : level_of(level);
}

// weight, gamma, beta, slope; forward the running mean and variance after them.
template <std::size_t kCount>
void set_parameters(RealLayer& layer, const std::array<Address, kCount>& parameters) {
  layer.weight = floats(parameters[0]);
  layer.gamma = floats(parameters[1]);
  layer.beta = floats(parameters[2]);
  layer.slope = floats(parameters[3]);
}

// What the forward pass sees and keeps.
void set_seen(RealLayer& layer, Address x, Address mean, Address rstd, Address z) {
  layer.x = floats(x);
  layer.mean = floats(mean);
  layer.rstd = floats(rstd);
  layer.z = floats(z);
}

void run_forward(const std::array<int, 10>& geometry, const std::string& activation, bool training, float eps,
                 float momentum, Address x, const std::array<Address, 6>& parameters, Address mean, Address rstd,
                 Address z, Address y, std::size_t y_stride, int threads, const std::string& level) {
  RealLayer layer = layer_of(geometry, activation);
  layer.training = training;
  layer.eps = eps;
  layer.momentum = momentum;
  set_parameters(layer, parameters);
  layer.running_mean = floats(parameters[4]);
  layer.running_var = floats(parameters[5]);
  set_seen(layer, x, mean, rstd, z);
  layer.y = floats(y);
  layer.y_stride = y_stride;
  const DenseLevel at = level_or_best(level);
  const nb::gil_scoped_release release;
  real_forward(layer, threads, at);
}

void run_backward(const std::array<int, 10>& geometry, const std::string& activation, bool training, Address x,
                  const std::array<Address, 4>& parameters, Address mean, Address rstd, Address z, Address dy,
                  std::size_t dy_stride, Address dx, bool accumulate, const std::array<Address, 4>& gradients,
                  int threads, const std::string& level) {
  RealLayer layer = layer_of(geometry, activation);
  layer.training = training;
  set_parameters(layer, parameters);
  set_seen(layer, x, mean, rstd, z);
  layer.dy = floats(dy);
  layer.y_stride = dy_stride;
  layer.dx = floats(dx);
  layer.accumulate = accumulate;
  layer.dweight = floats(gradients[0]);
  layer.dgamma = floats(gradients[1]);
  layer.dbeta = floats(gradients[2]);
  layer.dslope = floats(gradients[3]);
  const DenseLevel at = level_or_best(level);
  const nb::gil_scoped_release release;
  real_backward(layer, threads, at);
}

// geometry: batch, channels, height, width, kernel, stride, padding.
MaxPool pool_of(const std::array<int, 7>& geometry) {
  const auto [batch, channels, in_h, in_w, kernel, stride, padding] = geometry;
  require(batch > 0 && channels > 0 && stride > 0 && padding >= 0 && 2 * padding < kernel && kernel <= 15 &&
              in_h + 2 * padding >= kernel && in_w + 2 * padding >= kernel,
          "the pool does not fit its input");
  return {batch * channels, channels, in_h, in_w, kernel, stride, padding};
}

void run_max_pool(const std::array<int, 7>& geometry, Address x, Address y, std::size_t y_stride, Address place,
                  int threads, const std::string& level) {
  MaxPool task = pool_of(geometry);
  task.x = floats(x);
  task.y = floats(y);
  task.y_stride = y_stride;
  task.place = reinterpret_cast<std::uint8_t*>(place);
  const DenseLevel at = level_or_best(level);
  const nb::gil_scoped_release release;
  max_pool(task, threads, at);
}

void run_max_pool_gradient(const std::array<int, 7>& geometry, Address place, Address dy, std::size_t dy_stride,
                           Address dx, bool accumulate, int threads) {
  MaxPool task = pool_of(geometry);
  task.place = reinterpret_cast<std::uint8_t*>(place);
  task.dy = floats(dy);
  task.y_stride = dy_stride;
  task.dx = floats(dx);
  task.accumulate = accumulate;
  const nb::gil_scoped_release release;
  max_pool_gradient(task, threads);
}

}  // namespace

void bind_real_layers(nb::module_& m) {
  m.def(
      "real_storage", [](const std::array<int, 10>& geometry) { return storage_floats(layer_of(geometry, "none")); },
      nb::arg("geometry"), "Floats that a forward pass keeps for its backward pass.");
  m.def("real_forward", &run_forward, nb::arg("geometry"), nb::arg("activation"), nb::arg("training"), nb::arg("eps"),
        nb::arg("momentum"), nb::arg("x"), nb::arg("parameters"), nb::arg("mean"), nb::arg("rstd"), nb::arg("z"),
        nb::arg("y"), nb::arg("y_stride"), nb::arg("threads"), nb::arg("level") = "",
        "Fill y, mean, rstd and, unless its address is 0, z.");
  m.def("real_backward", &run_backward, nb::arg("geometry"), nb::arg("activation"), nb::arg("training"), nb::arg("x"),
        nb::arg("parameters"), nb::arg("mean"), nb::arg("rstd"), nb::arg("z"), nb::arg("dy"), nb::arg("dy_stride"),
        nb::arg("dx"), nb::arg("accumulate"), nb::arg("gradients"), nb::arg("threads"), nb::arg("level") = "",
        "Fill the gradients of the parameters and, unless its address is 0, dx.");
  m.def("max_pool", &run_max_pool, nb::arg("geometry"), nb::arg("x"), nb::arg("y"), nb::arg("y_stride"),
        nb::arg("place"), nb::arg("threads"), nb::arg("level") = "", "Fill y and, unless its address is 0, place.");
  m.def("max_pool_gradient", &run_max_pool_gradient, nb::arg("geometry"), nb::arg("place"), nb::arg("dy"),
        nb::arg("dy_stride"), nb::arg("dx"), nb::arg("accumulate"), nb::arg("threads"), "Fill, or add to, dx.");
}

}  // namespace ebnet
