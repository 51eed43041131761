// ebnet._native.train: the training of expert convolutions on torch's own memory.
#include "python/train.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <array>

#include "python/adam.h"
#include "python/arrays.h"
#include "python/real_layers.h"
#include "train/expert_conv.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

Estimator estimator_of(const std::string& name) {
  if (name == "one") return Estimator::one;
  if (name == "clip") return Estimator::clip;
  require(name == "polynomial", "no estimator is called " + name);
  return Estimator::polynomial;
}

// geometry: stride, padding and dilation, each down and right, then groups.
template <typename Array>
ConvShape shape_of(const Array& x, const In<float>& theta, const std::array<int, 7>& geometry) {
  require(x.ndim() == 4 && theta.ndim() == 5, "expected x [batch, in, h, w] and theta [experts, out, in / groups, kh, kw]");
  const auto number = [](std::size_t value) { return static_cast<int>(value); };
  const ConvShape shape{number(x.shape(1)), number(theta.shape(1)), geometry[6],  number(theta.shape(3)),
                        number(theta.shape(4)), geometry[0],        geometry[1],  geometry[2],
                        geometry[3],            geometry[4],        geometry[5],  number(x.shape(2)),
                        number(x.shape(3))};
  require(shape.valid() && number(theta.shape(2)) == shape.in_per_group(), "x, theta and geometry do not fit together");
  return shape;
}

void check_chosen(const In<std::int64_t>& chosen, std::size_t batch, std::size_t experts) {
  require(chosen.size() == batch, "chosen names an expert for each sample");
  for (std::size_t b = 0; b < batch; ++b) {
    require(chosen.data()[b] >= 0 && static_cast<std::size_t>(chosen.data()[b]) < experts, "chosen names no expert");
  }
}

template <typename Array>
void check_output(const Array& y, const ConvShape& s, std::size_t batch) {
  require(y.ndim() == 4 && y.shape(0) == batch && y.shape(1) == static_cast<std::size_t>(s.out_channels) &&
              y.shape(2) == static_cast<std::size_t>(s.out_h()) && y.shape(3) == static_cast<std::size_t>(s.out_w()),
          "y or dy does not have the shape of the output");
}

DenseLevel level_or_best(const std::string& level) {
  return level.empty() ? dense_level(requested_isa()) : level_of(level);
}

void run_sample_gradients(const In<float>& x, const In<float>& dy, const In<float>& theta, const In<std::int64_t>& chosen,
                          const std::array<int, 7>& geometry, const std::string& estimator, const Out<float>& dtheta,
                          const Out<float>& dgate, int threads, const std::string& level) {
  SampleGradients task;
  task.shape = shape_of(x, theta, geometry);
  const std::size_t batch = x.shape(0), experts = theta.shape(0);
  task.batch = static_cast<int>(batch);
  task.experts = static_cast<int>(experts);
  task.estimator = estimator_of(estimator);
  require(experts > 0 && threads > 0, "at least one expert and one thread");
  check_chosen(chosen, batch, experts);
  check_output(dy, task.shape, batch);
  require(dtheta.size() == theta.size() && dgate.size() == batch * experts, "dtheta or dgate of the wrong size");
  task.x = x.data();
  task.dy = dy.data();
  task.theta = theta.data();
  task.chosen = chosen.data();
  task.dtheta = dtheta.data();
  task.dgate = dgate.data();
  const DenseLevel at = level_or_best(level);
  const nb::gil_scoped_release release;
  sample_gradients(task, threads, at);
}

// x is read forward, written backward; y the other way round.
template <typename X, typename Y, typename From, typename To>
void run_conv(void (*run)(const ExpertConv&, int, DenseLevel), const X& x, const Y& y, const In<float>& theta,
              const In<std::int64_t>& chosen, const std::array<int, 7>& geometry, bool binary, int threads,
              const std::string& level, const From& from, const To& to) {
  ExpertConv task;
  task.shape = shape_of(x, theta, geometry);
  const std::size_t batch = x.shape(0), experts = theta.shape(0);
  task.batch = static_cast<int>(batch);
  task.experts = static_cast<int>(experts);
  task.binary = binary;
  require(experts > 0 && threads > 0, "at least one expert and one thread");
  check_chosen(chosen, batch, experts);
  check_output(y, task.shape, batch);
  task.from = from.data();
  task.theta = theta.data();
  task.chosen = chosen.data();
  task.to = to.data();
  const DenseLevel at = level_or_best(level);
  const nb::gil_scoped_release release;
  run(task, threads, at);
}

void run_forward(const In<float>& x, const In<float>& theta, const In<std::int64_t>& chosen,
                 const std::array<int, 7>& geometry, bool binary, const Out<float>& y, int threads,
                 const std::string& level) {
  run_conv(expert_forward, x, y, theta, chosen, geometry, binary, threads, level, x, y);
}

void run_input_gradient(const In<float>& dy, const In<float>& theta, const In<std::int64_t>& chosen,
                        const std::array<int, 7>& geometry, bool binary, const Out<float>& dx, int threads,
                        const std::string& level) {
  run_conv(expert_input_gradient, dx, dy, theta, chosen, geometry, binary, threads, level, dy, dx);
}

}  // namespace

void bind_train(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("train", "The training of expert convolutions on the CPU.");
  m.def("sample_gradients", &run_sample_gradients, nb::arg("x"), nb::arg("dy"), nb::arg("theta"), nb::arg("chosen"),
        nb::arg("geometry"), nb::arg("estimator"), nb::arg("dtheta"), nb::arg("dgate"), nb::arg("threads"),
        nb::arg("level") = "", "Fill dtheta [experts, ...] and dgate [batch, experts].");
  m.def("forward", &run_forward, nb::arg("x"), nb::arg("theta"), nb::arg("chosen"), nb::arg("geometry"),
        nb::arg("binary"), nb::arg("y"), nb::arg("threads"), nb::arg("level") = "", "Fill y [batch, out, h, w].");
  m.def("input_gradient", &run_input_gradient, nb::arg("dy"), nb::arg("theta"), nb::arg("chosen"), nb::arg("geometry"),
        nb::arg("binary"), nb::arg("dx"), nb::arg("threads"), nb::arg("level") = "", "Fill dx [batch, in, h, w].");
  bind_adam(m);
  bind_real_layers(m);
}

}  // namespace ebnet
