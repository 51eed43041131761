// The engine's binding: arrays in, arrays out, the core's errors as ebnet's. The interpreter runs on meanwhile.
#include "engine/engine.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>

#include "bconv/bconv.h"
#include "engine/kernel_proof.h"
#include "python/arrays.h"
#include "python/engine.h"

namespace nb = nanobind;

namespace ebnet {

namespace {

using Array = nb::ndarray<nb::ro, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
template <class T>
using Numpy = nb::ndarray<nb::numpy, T>;

const char* exception_name(Error error) {
  if (error == Error::FileMissing) return "MissingFileError";
  if (is_format_error(error)) return "FormatError";
  switch (error) {
    case Error::InputNotFinite:
    case Error::LogitsNotFinite:
      return "NonFiniteError";
    case Error::ArgumentInvalid:
    case Error::IsaUnavailable:
    case Error::ThreadsUnavailable:
      return "ConfigError";
    default:
      return "ShapeError";
  }
}

void check(const Status& status) {
  if (!PyErr_Occurred()) {
    for (const std::string& notice : take_kernel_notices()) {
      if (PyErr_WarnEx(PyExc_RuntimeWarning, notice.c_str(), 2) != 0) throw nb::python_error();
    }
  }
  if (status) return;
  if (PyErr_Occurred()) throw nb::python_error();  // Ctrl-C, see interrupted
  if (status.error == Error::OutOfMemory) throw std::bad_alloc();
  if (status.error == Error::Internal) throw std::runtime_error(status.message);
  nb::object type = nb::module_::import_("ebnet.errors").attr(exception_name(status.error));
  const std::string name = error_name(status.error);
  // A message may repeat a path, which need not be UTF-8.
  const std::string message = name + ": " + status.message;
  const auto text = nb::steal(PyUnicode_DecodeFSDefaultAndSize(message.data(), static_cast<Py_ssize_t>(message.size())));
  nb::object exception = type(text);
  exception.attr("code") = nb::str(name.c_str());
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

template <class T>
Numpy<T> own(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* storage = new std::vector<T>(std::move(values));
  nb::capsule owner(storage, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Numpy<T>(storage->data(), shape, owner);
}

// The Python side has made sure of type and order of the axes; the channel count is checked here, where pointers are.
Images images_of(const Engine& engine, const Array& array) {
  const bool reals = array.dtype() == nb::dtype<float>();
  if (!reals && array.dtype() != nb::dtype<std::uint8_t>()) throw nb::type_error("images are float32 or uint8");
  const auto channels = static_cast<std::size_t>(engine.model().program.in_channels);
  if (array.shape(reals ? 1 : 3) != channels) throw nb::value_error("images with another number of channels");
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (array.shape(axis) > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw nb::value_error("too large");
  }
  Images images;
  images.batch = static_cast<int>(array.shape(0));
  images.height = static_cast<int>(array.shape(reals ? 2 : 1));
  images.width = static_cast<int>(array.shape(reals ? 3 : 2));
  if (reals) {
    images.reals = static_cast<const float*>(array.data());
  } else {
    images.bytes = static_cast<const std::uint8_t*>(array.data());
  }
  return images;
}

struct Outputs {
  std::size_t batch, classes, layers;
  std::vector<float> logits;
  std::vector<std::int64_t> experts;

  Outputs(const Engine& engine, const Images& images)
      : batch(static_cast<std::size_t>(images.batch)),
        classes(static_cast<std::size_t>(engine.model().program.classes())),
        layers(static_cast<std::size_t>(engine.model().program.binary_layers())),
        logits(batch * classes),
        experts(batch * layers) {}

  Numpy<float> take_logits() { return own(std::move(logits), {batch, classes}); }
  Numpy<std::int64_t> take_experts() { return own(std::move(experts), {layers, batch}); }
};

template <class Run>
void without_gil(Run&& run) {
  Status status;
  {
    nb::gil_scoped_release release;
    status = run();
  }
  check(status);
}

// Whether a signal's handler has raised something, as Ctrl-C's does.
bool interrupted() {
  nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

// Only the main thread is ever told of signals; others need not wait for the interpreter to ask.
Poll signals() {
  static const auto main_thread =
      nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  return PyThread_get_thread_ident() == main_thread ? Poll(interrupted) : Poll();
}

// A file of that name, or in memory the file itself. The path is bytes, as the file system has it: not every name is
// UTF-8.
template <bool kInMemory>
std::unique_ptr<Engine> load(const nb::bytes& file, int threads, const std::string& stream, std::uint64_t work,
                             std::uint64_t memory, int side) {
  Options options = {threads, stream_type_of(stream), {}, {}};
  options.limits.set(work, memory, side);
  std::unique_ptr<Engine> engine;
  const std::string name(file.c_str(), kInMemory ? 0 : file.size());
  without_gil([&] {
    if (!kInMemory) return Engine::load_file(name, options, &engine);
    return Engine::load(std::make_shared<MemorySource>(file.data(), file.size()), options, &engine);
  });
  return engine;
}

nb::tuple run(Engine& engine, const Array& array) {
  const Images images = images_of(engine, array);
  Outputs outputs(engine, images);
  const Poll poll = signals();
  without_gil([&] { return engine.run(images, {outputs.logits.data(), outputs.experts.data()}, poll); });
  return nb::make_tuple(outputs.take_logits(), outputs.take_experts());
}

nb::tuple trace(Engine& engine, const Array& array) {
  const Images images = images_of(engine, array);
  Outputs outputs(engine, images);
  std::vector<std::vector<float>> values;
  const Poll poll = signals();
  without_gil([&] { return engine.run(images, {outputs.logits.data(), outputs.experts.data(), &values}, poll); });
  nb::list listed;
  for (std::vector<float>& value : values) {
    const std::size_t count = value.size() / outputs.batch;
    listed.append(own(std::move(value), {outputs.batch, count}));
  }
  return nb::make_tuple(outputs.take_logits(), outputs.take_experts(), listed);
}

nb::list profile(Engine& engine, const Array& array) {
  const Images images = images_of(engine, array);
  Outputs outputs(engine, images);
  std::vector<OpProfile> ops;
  const Poll poll = signals();
  without_gil([&] { return engine.run(images, {outputs.logits.data(), nullptr, nullptr, &ops}, poll); });
  nb::list listed;
  for (const OpProfile& op : ops) {
    nb::dict row;
    row["name"] = op.name;
    row["kind"] = op.kind;
    row["kernel"] = op.kernel;
    row["macs"] = op.macs;
    row["seconds"] = op.seconds;
    row["shape"] = op.shape;
    listed.append(row);
  }
  return listed;
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<Engine>(module, "Engine", "A packed network, ready to run.")
      .def_static("load", &load<false>, nb::arg("path"), nb::arg("threads"), nb::arg("stream"),
                  nb::arg("work") = 0, nb::arg("memory") = 0, nb::arg("side") = 0)
      .def_static("load_memory", &load<true>, nb::arg("data"), nb::arg("threads"), nb::arg("stream") = "fp32",
                  nb::arg("work") = 0, nb::arg("memory") = 0, nb::arg("side") = 0)
      .def("run", &run, nb::arg("images"), "(logits [batch, classes], experts [layers, batch])")
      .def("trace", &trace, nb::arg("images"), "run's results and every op's value as [batch, pixels * channels]")
      .def("profile", &profile, nb::arg("images"), "Per op: name, kind, kernel, multiply-accumulates, seconds, shape")
      .def("plan", [](Engine& engine, int batch, int height,
                      int width) { without_gil([&] { return engine.plan(batch, height, width); }); })
      .def_prop_ro("threads", [](const Engine& engine) { return engine.options().threads; })
      .def_prop_ro("stream", [](const Engine& engine) { return stream_type_name(engine.options().stream); })
      .def_prop_ro("classes", [](const Engine& engine) { return engine.model().program.classes(); })
      .def_prop_ro("in_channels", [](const Engine& engine) { return engine.model().program.in_channels; })
      .def_prop_ro("labels", [](const Engine& engine) { return engine.model().labels; })
      .def_prop_ro("isa", [](const Engine& engine) { return isa_name(engine.model().isa); })
      .def_prop_ro("session_bytes", &Engine::session_bytes)
      .def_prop_ro("kernels",
                   [](const Engine& engine) {
                     std::vector<std::string> names;
                     without_gil([&] { return engine.kernels(&names); });
                     return names;
                   })
      .def_prop_ro("file_bytes", [](const Engine& engine) { return engine.model().file_bytes; })
      .def_prop_ro("program", [](const Engine& engine) { return engine.model().program_text; })
      .def_prop_ro("preprocessing", [](const Engine& engine) { return engine.model().preprocessing_text; })
      .def_prop_ro("network", [](const Engine& engine) { return engine.model().network_text; });
  nb::dict errors;
#define X(name, number) errors[#name] = number;
  EBNET_ERRORS(X)
#undef X
  module.attr("ERRORS") = errors;
}

}  // namespace ebnet
