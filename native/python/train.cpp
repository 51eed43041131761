// ebnet._native.train: the training of expert convolutions on torch's own memory.
#include "python/train.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <array>

#include "python/arrays.h"
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
ConvShape shape_of(const In<float>& x, const In<float>& theta, const std::array<int, 7>& geometry) {
  require(x.ndim() == 4 && theta.ndim() == 5, "expected x [batch, in, h, w] and theta [experts, out, in / groups, kh, kw]");
  const auto number = [](std::size_t value) { return static_cast<int>(value); };
  const ConvShape shape{number(x.shape(1)), number(theta.shape(1)), geometry[6],  number(theta.shape(3)),
                        number(theta.shape(4)), geometry[0],        geometry[1],  geometry[2],
                        geometry[3],            geometry[4],        geometry[5],  number(x.shape(2)),
                        number(x.shape(3))};
  require(shape.valid() && number(theta.shape(2)) == shape.in_per_group(), "x, theta and geometry do not fit together");
  return shape;
}

void run_sample_gradients(const In<float>& x, const In<float>& dy, const In<float>& theta, const In<std::int64_t>& chosen,
                          const std::array<int, 7>& geometry, const std::string& estimator, Out<float>& dtheta,
                          Out<float>& dgate, int threads, const std::string& level) {
  SampleGradients task;
  task.shape = shape_of(x, theta, geometry);
  const ConvShape& s = task.shape;
  const std::size_t batch = x.shape(0), experts = theta.shape(0);
  task.batch = static_cast<int>(batch);
  task.experts = static_cast<int>(experts);
  task.estimator = estimator_of(estimator);
  require(experts > 0 && threads > 0, "at least one expert and one thread");
  require(dy.ndim() == 4 && dy.shape(0) == batch && dy.shape(1) == theta.shape(1) &&
              dy.shape(2) == static_cast<std::size_t>(s.out_h()) && dy.shape(3) == static_cast<std::size_t>(s.out_w()),
          "dy does not have the shape of the output");
  require(chosen.size() == batch && dtheta.size() == theta.size() && dgate.size() == batch * experts,
          "chosen, dtheta or dgate of the wrong size");
  for (std::size_t b = 0; b < batch; ++b) {
    require(chosen.data()[b] >= 0 && static_cast<std::size_t>(chosen.data()[b]) < experts, "chosen names no expert");
  }
  task.x = x.data();
  task.dy = dy.data();
  task.theta = theta.data();
  task.chosen = chosen.data();
  task.dtheta = dtheta.data();
  task.dgate = dgate.data();
  const DenseLevel at = level.empty() ? dense_level(requested_isa()) : level_of(level);
  const nb::gil_scoped_release release;
  sample_gradients(task, threads, at);
}

}  // namespace

void bind_train(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("train", "The training of expert convolutions on the CPU.");
  m.def("sample_gradients", &run_sample_gradients, nb::arg("x"), nb::arg("dy"), nb::arg("theta"), nb::arg("chosen"),
        nb::arg("geometry"), nb::arg("estimator"), nb::arg("dtheta"), nb::arg("dgate"), nb::arg("threads"),
        nb::arg("level") = "", "Fill dtheta [experts, ...] and dgate [batch, experts].");
}

}  // namespace ebnet
