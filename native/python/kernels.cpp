// ebnet._native.kernels: each kernel by its name, on numpy arrays. Tests compare kernels through it and benchmarks time
// them; the engine does not use it.
#include "python/kernels.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bconv/bconv.h"
#include "bconv/timing.h"
#include "bits/binarize.h"
#include "dense/dense.h"
#include "python/arrays.h"
#include "python/int8.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

template <typename T>
using MaybeIn = std::optional<In<T>>;
template <typename T>
using MaybeOut = std::optional<Out<T>>;
using MaybeRead = std::optional<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>;
using MaybeWrite = std::optional<nb::ndarray<nb::c_contig, nb::device::cpu>>;

// A pointer into an array that must hold `count` values; null for None.
template <typename Array>
auto pointer(const std::optional<Array>& array, std::size_t count, const char* name) -> decltype(array->data()) {
  if (!array.has_value()) return nullptr;
  require(array->size() == count, std::string(name) + " holds " + std::to_string(array->size()) + " values, expected " +
                                      std::to_string(count));
  return array->data();
}

// The same for values of a stream, which come as float32 or as the bits of a narrow type.
template <typename Array>
auto stream_pointer(const std::optional<Array>& array, std::size_t count, StreamType type, const char* name)
    -> decltype(array->data()) {
  if (array.has_value()) {
    const bool fits = type == StreamType::fp32 ? array->dtype() == nb::dtype<float>()
                                               : array->dtype() == nb::dtype<std::uint16_t>();
    require(fits, std::string(name) + " is float32 for fp32, else uint16");
  }
  return pointer(array, count, name);
}

// The thirteen numbers of a ConvShape, in its order.
ConvShape shape_of(const std::vector<int>& n) {
  require(n.size() == 13, "a shape has 13 numbers, got " + std::to_string(n.size()));
  ConvShape shape{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12]};
  require(shape.valid(), "impossible convolution shape");
  return shape;
}

const Kernel& kernel_of(const std::string& name, const ConvShape& shape) {
  for (const Kernel* kernel : all_kernels()) {
    if (name != kernel->name) continue;
    require(cpu_supports(kernel->isa), "this CPU cannot run " + name);
    require(kernel->supports(shape), name + " does not support this shape");
    return *kernel;
  }
  throw std::invalid_argument("no kernel is called " + name);
}

Isa isa_of(const std::string& name) {
  for (const Kernel* kernel : all_kernels()) {
    if (name == isa_name(kernel->isa)) return kernel->isa;
  }
  throw std::invalid_argument("no instruction set is called " + name);
}

std::size_t pixels(int h, int w) { return static_cast<std::size_t>(h) * static_cast<std::size_t>(w); }

// Runs one kernel on one sample, rows [0, split) and [split, all) apart, into the arrays given. Returns the name of the
// kernel that ran.
std::string run(const std::string& name, const std::vector<int>& numbers, const In<std::uint8_t>& canonical,
                const In<std::uint64_t>& input, MaybeIn<float> scale, MaybeIn<float> slope, MaybeRead skip,
                MaybeIn<float> bn_scale, MaybeIn<float> bn_shift, int bits_per_group, MaybeWrite stream,
                MaybeOut<std::uint64_t> bits, MaybeOut<float> row_sums, MaybeOut<std::int32_t> dots, int split,
                const std::string& skip_type, const std::string& stream_type, MaybeIn<float> shift,
                MaybeIn<float> after, bool act_last) {
  const ConvShape shape = shape_of(numbers);
  const Kernel& kernel = kernel_of(name, shape);
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const std::size_t outputs = pixels(shape.out_h(), shape.out_w());
  require(canonical.size() == shape.canonical_bytes(), "weights of the wrong size");
  require(input.size() == pixels(shape.in_h, shape.in_w) * static_cast<std::size_t>(shape.words_per_pixel()),
          "input of the wrong size");
  require(split >= 0 && split <= shape.out_h(), "the split is no output row");
  Epilogue e;
  e.scale = pointer(scale, channels, "scale");
  e.shift = pointer(shift, channels, "shift");
  e.slope = pointer(slope, channels, "slope");
  e.act_last = act_last;
  e.after = pointer(after, channels, "after");
  e.skip_type = stream_type_of(skip_type);
  e.stream_type = stream_type_of(stream_type);
  e.skip = stream_pointer(skip, outputs * channels, e.skip_type, "skip");
  e.skip_stride = channels;
  e.stream = stream_pointer(stream, outputs * channels, e.stream_type, "stream");
  e.stream_stride = channels;
  e.bn_scale = pointer(bn_scale, channels, "bn_scale");
  e.bn_shift = pointer(bn_shift, channels, "bn_shift");
  if (bits.has_value()) {
    require(bits_per_group > 0 && shape.out_channels % bits_per_group == 0, "bits_per_group must divide the channels");
    require(e.bn_scale != nullptr && e.bn_shift != nullptr, "bits need bn_scale and bn_shift");
    e.bits = pointer(bits, outputs * bit_words_per_pixel(shape.out_channels, bits_per_group), "bits");
    e.bits_per_group = bits_per_group;
  }
  e.row_sums = pointer(row_sums, static_cast<std::size_t>(shape.out_h()) * channels, "row_sums");
  e.dots = pointer(dots, outputs * channels, "dots");
  const PackedWeights weights = kernel.prepare(canonical.data(), shape);
  AlignedBytes scratch(kernel.scratch_bytes(shape));
  {
    nb::gil_scoped_release release;
    kernel.run({&shape, &weights, input.data(), &e, 0, split, scratch.data()});
    kernel.run({&shape, &weights, input.data(), &e, split, shape.out_h(), scratch.data()});
  }
  return kernel.name;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A convolution with fixed made-up data, to be timed again and again.
class Timing {
 public:
  Timing(const std::string& name, const std::vector<int>& numbers)
      : timing_(kernel_of(name, shape_of(numbers)), shape_of(numbers)) {}

  // Seconds of each of `repeats` runs.
  std::vector<double> time(bool fused, int repeats) {
    std::vector<double> seconds;
    nb::gil_scoped_release release;
    for (int i = 0; i < repeats; ++i) seconds.push_back(timing_.seconds(fused));
    return seconds;
  }

  double macs() const { return timing_.macs(); }

 private:
  KernelTiming timing_;
};

// The core clock in Hz, from a chain of multiplications that each wait for the last one: 3 cycles each on x86-64.
double core_clock() {
  constexpr int kSteps = 20000;
  std::uint64_t x = 3;
  const double start = seconds_now();
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      x *= x;
      asm volatile("" : "+r"(x));
    }
  }
  return 3.0 * 8 * kSteps / (seconds_now() - start);
}

Activation activation_of(const std::string& name) {
  if (name == "none") return Activation::none;
  if (name == "relu") return Activation::relu;
  require(name == "prelu", "no activation is called " + name);
  return Activation::prelu;
}

// Values from pixel to pixel of an array that holds `count` pixels of at least `channels` values.
std::size_t stride_of(std::size_t size, std::size_t count, std::size_t channels, const char* name) {
  require(size % count == 0 && size / count >= channels,
          std::string(name) + " holds " + std::to_string(size) + " values, not " + std::to_string(count) +
              " pixels of at least " + std::to_string(channels));
  return size / count;
}

// input [h][w][input_stride], output [h][w][output_stride], both filled by the caller.
void run_dense_conv(const std::string& level, const std::vector<int>& numbers, const In<float>& weights,
                    MaybeIn<float> scale, MaybeIn<float> shift, const std::string& activation, MaybeIn<float> slope,
                    const In<float>& input, Out<float>& output, int split) {
  const ConvShape shape = shape_of(numbers);
  require(shape.groups == 1, "real convolutions have no groups");
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const std::size_t inputs = static_cast<std::size_t>(shape.in_channels);
  require(weights.size() == channels * inputs * static_cast<std::size_t>(shape.taps()), "weights of the wrong size");
  const std::size_t in_stride = stride_of(input.size(), pixels(shape.in_h, shape.in_w), inputs, "input");
  const std::size_t out_stride = stride_of(output.size(), pixels(shape.out_h(), shape.out_w()), channels, "output");
  require(split >= 0 && split <= shape.out_h(), "the split is no output row");
  require(activation != "prelu" || slope.has_value(), "prelu needs a slope");
  const DenseConv conv =
      make_dense_conv(shape, weights.data(), pointer(scale, channels, "scale"), pointer(shift, channels, "shift"),
                      activation_of(activation), pointer(slope, channels, "slope"));
  dense_conv(conv, shape, input.data(), in_stride, output.data(), out_stride, 0, split, level_of(level));
  dense_conv(conv, shape, input.data(), in_stride, output.data(), out_stride, split, shape.out_h(), level_of(level));
}

// kind: "max" or "average"; input [h][w][channels].
void run_pool(const std::string& level, const std::string& kind, int kernel, int stride, int pad, bool ceil_mode,
              const In<float>& input, Out<float>& output) {
  require(input.ndim() == 3 && output.ndim() == 3 && input.size() > 0, "pools take arrays [h, w, channels]");
  require(kind == "max" || kind == "average", "no pool is called " + kind);
  require(kernel > 0 && stride > 0 && pad >= 0 && 2 * pad <= kernel, "impossible pool window");
  PoolShape shape;
  shape.in_h = static_cast<int>(input.shape(0));
  shape.in_w = static_cast<int>(input.shape(1));
  shape.channels = static_cast<int>(input.shape(2));
  shape.kernel = kernel;
  shape.stride = stride;
  shape.pad = pad;
  shape.ceil_mode = ceil_mode;
  require(shape.in_h + 2 * pad >= kernel && shape.in_w + 2 * pad >= kernel, "the window does not fit into the input");
  const std::size_t channels = input.shape(2);
  require(output.shape(0) == static_cast<std::size_t>(shape.out_h()) &&
              output.shape(1) == static_cast<std::size_t>(shape.out_w()) && output.shape(2) == channels,
          "the output would be " + std::to_string(shape.out_h()) + " x " + std::to_string(shape.out_w()) + " x " +
              std::to_string(channels));
  const auto pool = kind == "max" ? max_pool : average_pool;
  pool(shape, input.data(), channels, output.data(), channels, 0, shape.out_h(), level_of(level));
}

void run_global_average_pool(const std::string& level, const In<float>& input, Out<float>& output) {
  require(input.ndim() == 2 && input.size() > 0 && output.size() == input.shape(1),
          "expected [pixels, channels] and [channels]");
  global_average_pool(input.data(), input.shape(1), static_cast<int>(input.shape(0)), static_cast<int>(input.shape(1)),
                      output.data(), level_of(level));
}

void run_linear(const std::string& level, const In<float>& weights, MaybeIn<float> bias, const std::string& activation,
                MaybeIn<float> slope, const In<float>& input, Out<float>& output) {
  require(weights.ndim() == 2 && weights.shape(0) == output.size() && weights.shape(1) == input.size(),
          "expected weights [out, in]");
  require(activation != "prelu" || slope.has_value(), "prelu needs a slope");
  linear(weights.data(), pointer(bias, output.size(), "bias"), pointer(slope, output.size(), "slope"),
         activation_of(activation), input.data(), static_cast<int>(input.size()), static_cast<int>(output.size()),
         output.data(), level_of(level));
}

void run_binarize(const In<float>& input, int per_group, const In<float>& bn_scale, const In<float>& bn_shift,
                  Out<std::uint64_t>& bits, Out<float>& sums) {
  require(input.ndim() == 2, "expected [pixels, channels]");
  const int channels = static_cast<int>(input.shape(1));
  require(per_group > 0 && channels % per_group == 0, "per_group must divide the channels");
  require(bits.size() == input.shape(0) * bit_words_per_pixel(channels, per_group), "bits of the wrong size");
  require(bn_scale.size() == input.shape(1) && bn_shift.size() == input.shape(1) && sums.size() == input.shape(1),
          "bn_scale, bn_shift and sums have one value for each of the " + std::to_string(channels) + " channels");
  binarize(input.data(), input.shape(1), static_cast<int>(input.shape(0)), channels, per_group, bn_scale.data(),
           bn_shift.data(), bits.data(), sums.data());
}

}  // namespace

void bind_kernels(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("kernels", "Each kernel by name, for tests and benchmarks.");
  m.def("names", [] {
    std::vector<std::pair<std::string, bool>> list;
    for (const Kernel* kernel : all_kernels()) list.emplace_back(kernel->name, cpu_supports(kernel->isa));
    return list;
  }, "Every binary convolution kernel and whether this CPU runs it.");
  m.def("select", [](const std::vector<int>& shape, const std::string& isa) {
    return std::string(select(shape_of(shape), isa_of(isa)).name);
  }, nb::arg("shape"), nb::arg("isa"), "The kernel an instruction set gives a shape.");
  m.def("supports", [](const std::string& name, const std::vector<int>& shape) {
    for (const Kernel* kernel : all_kernels()) {
      if (name == kernel->name) return kernel->supports(shape_of(shape));
    }
    throw std::invalid_argument("no kernel is called " + name);
  }, nb::arg("name"), nb::arg("shape"), "Whether a kernel runs a shape, on a CPU that has its instructions.");
  m.def("requested_isa", [] { return std::string(isa_name(requested_isa())); }, "EBNET_ISA, or the best of this CPU.");
  m.def("requested_levels", [] {
    return std::pair<std::string, std::string>(dense_level_name(requested_dense_level()),
                                               int8_level_name(requested_int8_level()));
  }, "Levels of the real-valued kernels and of those on bytes: those of EBNET_ISA, or the best of this CPU.");
  m.def("run", &run, nb::arg("name"), nb::arg("shape"), nb::arg("weights"), nb::arg("input"), nb::kw_only(),
        nb::arg("scale").none() = nb::none(), nb::arg("slope").none() = nb::none(), nb::arg("skip").none() = nb::none(),
        nb::arg("bn_scale").none() = nb::none(), nb::arg("bn_shift").none() = nb::none(), nb::arg("bits_per_group") = 0,
        nb::arg("stream").none() = nb::none(), nb::arg("bits").none() = nb::none(),
        nb::arg("row_sums").none() = nb::none(), nb::arg("dots").none() = nb::none(), nb::arg("split") = 0,
        nb::arg("skip_type") = "fp32", nb::arg("stream_type") = "fp32", nb::arg("shift").none() = nb::none(),
        nb::arg("after").none() = nb::none(), nb::arg("act_last") = false,
        "Run one kernel into the arrays given; returns its name.");
  nb::class_<Timing>(m, "Timing")
      .def(nb::init<const std::string&, const std::vector<int>&>(), nb::arg("name"), nb::arg("shape"))
      .def("time", &Timing::time, nb::arg("fused"), nb::arg("repeats"))
      .def_prop_ro("macs", &Timing::macs);
  m.def("core_clock", &core_clock, "The core clock in Hz, measured now.");
  m.def("dense_levels", [] {
    std::vector<std::pair<std::string, bool>> list;
    for (const DenseLevel level : kDenseLevels) {
      list.emplace_back(dense_level_name(level), cpu_supports(level));
    }
    return list;
  }, "Every level of the real-valued kernels and whether this CPU runs it.");
  m.def("dense_conv", &run_dense_conv, nb::arg("level"), nb::arg("shape"), nb::arg("weights"), nb::arg("scale").none(),
        nb::arg("shift").none(), nb::arg("activation"), nb::arg("slope").none(), nb::arg("input"), nb::arg("output"),
        nb::arg("split") = 0);
  m.def("pool", &run_pool, nb::arg("level"), nb::arg("kind"), nb::arg("kernel"), nb::arg("stride"), nb::arg("pad"),
        nb::arg("ceil_mode"), nb::arg("input"), nb::arg("output"));
  m.def("global_average_pool", &run_global_average_pool, nb::arg("level"), nb::arg("input"), nb::arg("output"));
  m.def("linear", &run_linear, nb::arg("level"), nb::arg("weights"), nb::arg("bias").none(), nb::arg("activation"),
        nb::arg("slope").none(), nb::arg("input"), nb::arg("output"));
  m.def("binarize", &run_binarize, nb::arg("input"), nb::arg("per_group"), nb::arg("bn_scale"), nb::arg("bn_shift"),
        nb::arg("bits"), nb::arg("sums"));
  bind_int8(m);
}

}  // namespace ebnet
