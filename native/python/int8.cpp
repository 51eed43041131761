// The int8 kernels of ebnet._native.kernels, on numpy arrays.
#include "python/int8.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dense/int8.h"
#include "python/arrays.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

Int8Level int8_level_of(const std::string& name) {
  for (const Int8Level level : kInt8Levels) {
    if (name != int8_level_name(level)) continue;
    require(cpu_supports(level), "this CPU cannot run " + name);
    return level;
  }
  throw std::invalid_argument("no level is called " + name);
}

int extent(std::size_t size) {
  require(size > 0 && size <= 1 << 15, "an extent is 1 to 32768");
  return static_cast<int>(size);
}

template <typename Array>
void require_size(const Array& array, std::size_t count, const char* name) {
  require(array.size() == count, std::string(name) + " holds " + std::to_string(array.size()) + " values, expected " +
                                     std::to_string(count));
}

// A copy with the slack that readers of bytes need.
std::vector<std::uint8_t> with_slack(const In<std::uint8_t>& bytes) {
  std::vector<std::uint8_t> copy(bytes.size() + kInt8Slack);
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

// weights [out, in, k, k], input [h, w, at least in], output [h, w, at least out] of floats or bytes.
void run_conv(const std::string& level, const In<std::int8_t>& weights, const In<std::uint8_t>& zeros,
              const In<float>& multiplier, const In<float>& shift, std::optional<In<float>> slope, bool relu,
              int stride, int pad, const In<std::uint8_t>& input, std::optional<Out<float>> reals,
              std::optional<Out<std::uint8_t>> bytes, float step, int zero, int split) {
  require(weights.ndim() == 4 && input.ndim() == 3 && weights.shape(2) == weights.shape(3), "weights are [out, in, k, k], an input [h, w, channels]");
  ConvShape shape;
  shape.out_channels = extent(weights.shape(0));
  shape.in_channels = extent(weights.shape(1));
  shape.kernel_h = shape.kernel_w = extent(weights.shape(2));
  shape.stride_h = shape.stride_w = stride;
  shape.pad_h = shape.pad_w = pad;
  shape.in_h = extent(input.shape(0));
  shape.in_w = extent(input.shape(1));
  require(stride <= 1 << 15 && pad <= 1 << 15 && shape.valid() && pad < shape.kernel_h, "impossible convolution shape");
  require(shape.taps() * shape.in_channels <= kMostInt8Inputs, "too many inputs of one sum");
  require(std::all_of(weights.data(), weights.data() + weights.size(),
                      [](int weight) { return std::abs(weight) <= kLargestInt8Weight; }), "a weight is beyond 64");
  require(input.shape(2) >= weights.shape(1), "the input has too few channels");
  require_size(zeros, weights.shape(1), "zeros");
  require_size(multiplier, weights.shape(0), "multiplier");
  require_size(shift, weights.shape(0), "shift");
  if (slope.has_value()) require_size(*slope, weights.shape(0), "slope");
  require(reals.has_value() != bytes.has_value(), "give reals or bytes");
  require(split >= 0 && split <= shape.out_h() && std::isnormal(step) && step > 0 && zero >= 0 && zero <= 255, "the split is no output row, or the code none");
  const auto check = [&](const auto& output) {
    require(output.ndim() == 3 && output.shape(0) == static_cast<std::size_t>(shape.out_h()) &&
                output.shape(1) == static_cast<std::size_t>(shape.out_w()) && output.shape(2) >= weights.shape(0),
            "the output does not fit");
    return output.shape(2);
  };
  Int8Output output;
  output.stride = reals.has_value() ? check(*reals) : check(*bytes);
  output.reals = reals.has_value() ? reals->data() : nullptr;
  output.bytes = bytes.has_value() ? bytes->data() : nullptr;
  output.code = {step, zero};
  const Activation activation = slope.has_value() ? Activation::prelu : relu ? Activation::relu : Activation::none;
  const Int8Conv conv = make_int8_conv(shape, weights.data(), zeros.data(), multiplier.data(), shift.data(), activation,
                                       slope.has_value() ? slope->data() : nullptr);
  const std::vector<std::uint8_t> image = with_slack(input);
  std::vector<std::uint8_t> scratch(int8_scratch_bytes(conv));
  const Int8Level chosen = int8_level_of(level);
  int8_conv(conv, shape, image.data(), input.shape(2), output, 0, split, chosen, scratch.data());
  int8_conv(conv, shape, image.data(), input.shape(2), output, split, shape.out_h(), chosen, scratch.data());
}

void run_to_bytes(const std::string& level, const In<float>& input, const In<float>& inverse, const In<float>& zero,
                  Out<std::uint8_t>& output) {
  require(input.ndim() == 2 && input.shape(1) > 0, "an input is [pixels, channels]");
  require_size(inverse, input.shape(1), "inverse");
  require_size(zero, input.shape(1), "zero");
  require_size(output, input.size(), "output");
  to_bytes(input.data(), input.shape(1), static_cast<int>(input.shape(0)), extent(input.shape(1)), inverse.data(),
           zero.data(), output.data(), input.shape(1), int8_level_of(level));
}

void run_max_pool(const std::string& level, int kernel, int stride, int pad, bool ceil_mode,
                  const In<std::uint8_t>& input, Out<std::uint8_t>& output) {
  require(input.ndim() == 3 && output.ndim() == 3, "pools take arrays [h, w, channels]");
  require(kernel > 0 && stride > 0 && pad >= 0 && 2 * pad <= kernel, "impossible pool window");
  PoolShape shape;
  shape.in_h = extent(input.shape(0));
  shape.in_w = extent(input.shape(1));
  shape.channels = extent(input.shape(2));
  shape.kernel = kernel;
  shape.stride = stride;
  shape.pad = pad;
  shape.ceil_mode = ceil_mode;
  require(shape.in_h + 2 * pad >= kernel && shape.in_w + 2 * pad >= kernel, "the window does not fit into the input");
  require(output.shape(0) == static_cast<std::size_t>(shape.out_h()) &&
              output.shape(1) == static_cast<std::size_t>(shape.out_w()) && output.shape(2) == input.shape(2),
          "the output does not fit");
  max_pool_bytes(shape, input.data(), input.shape(2), output.data(), input.shape(2), 0, shape.out_h(), int8_level_of(level));
}

}  // namespace

void bind_int8(nb::module_& m) {
  m.def("int8_levels", [] {
    std::vector<std::pair<std::string, bool>> list;
    for (const Int8Level level : kInt8Levels) list.emplace_back(int8_level_name(level), cpu_supports(level));
    return list;
  }, "Every level of the int8 kernels and whether this CPU runs it.");
  m.def("int8_conv", &run_conv, nb::arg("level"), nb::arg("weights"), nb::arg("zeros"), nb::arg("multiplier"),
        nb::arg("shift"), nb::arg("slope").none(), nb::arg("relu"), nb::arg("stride"), nb::arg("pad"),
        nb::arg("input"), nb::arg("reals").none(), nb::arg("bytes").none(), nb::arg("step") = 1.0f,
        nb::arg("zero") = 0, nb::arg("split") = 0);
  m.def("to_bytes", &run_to_bytes, nb::arg("level"), nb::arg("input"), nb::arg("inverse"), nb::arg("zero"),
        nb::arg("output"));
  m.def("max_pool_bytes", &run_max_pool, nb::arg("level"), nb::arg("kernel"), nb::arg("stride"), nb::arg("pad"),
        nb::arg("ceil_mode"), nb::arg("input"), nb::arg("output"));
}

}  // namespace ebnet
