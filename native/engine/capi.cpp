#include <string>

#include "bconv/bconv.h"
#include "ebnet.h"
#include "engine/engine.h"

struct ebnet_engine {
  std::unique_ptr<ebnet::Engine> engine;
};

namespace {

thread_local std::string last_error;

int report(const ebnet::Status& status) noexcept {
  try {
    if (!status) last_error = std::string(ebnet::error_name(status.error)) + ": " + status.message;
  } catch (...) {
    // No memory for the sentence; the number still tells.
  }
  return static_cast<int>(status.error);
}

int missing(const char* what) {
  return report(ebnet::guarded([&] { ebnet::fail(ebnet::Error::ArgumentInvalid, std::string(what) + " is NULL"); }));
}

template <class Load>
int load(ebnet_engine** engine, Load&& make) {
  if (engine == nullptr) return missing("engine");
  *engine = nullptr;
  ebnet::Status status;
  const ebnet::Status made = ebnet::guarded([&] {
    auto handle = std::make_unique<ebnet_engine>();
    status = make(&handle->engine);
    if (status) *engine = handle.release();
  });
  return report(made ? status : made);
}

int run(ebnet_engine* engine, const ebnet::Images& images, float* logits, int64_t* experts) {
  if (engine == nullptr) return missing("engine");
  return report(engine->engine->run(images, {logits, experts}));
}

}  // namespace

const char* ebnet_version(void) { return EBNET_VERSION; }

const char* ebnet_error_name(int error) { return ebnet::error_name(static_cast<ebnet::Error>(error)); }

const char* ebnet_last_error(void) { return last_error.c_str(); }

int ebnet_load(const char* path, int threads, ebnet_engine** engine) {
  const ebnet_options options = {threads, EBNET_STREAM_FP32};
  return ebnet_load_with(path, &options, engine);
}

int ebnet_load_with(const char* path, const ebnet_options* options, ebnet_engine** engine) {
  if (path == nullptr) return missing("path");
  if (options == nullptr) return missing("options");
  if (options->stream < EBNET_STREAM_FP32 || options->stream > EBNET_STREAM_BF16) {
    return report(ebnet::guarded([&] {
      ebnet::fail(ebnet::Error::ArgumentInvalid, "stream=" + std::to_string(options->stream) + ": expected 0 to 2");
    }));
  }
  const ebnet::Options with = {options->threads, static_cast<ebnet::StreamType>(options->stream), {}};
  return load(engine, [&](std::unique_ptr<ebnet::Engine>* made) { return ebnet::Engine::load_file(path, with, made); });
}

int ebnet_load_memory(const void* data, size_t size, int threads, ebnet_engine** engine) {
  if (data == nullptr) return missing("data");
  return load(engine, [&](std::unique_ptr<ebnet::Engine>* made) {
    return ebnet::Engine::load(std::make_shared<ebnet::MemorySource>(data, size), {threads, {}, {}}, made);
  });
}

void ebnet_free(ebnet_engine* engine) { delete engine; }

int ebnet_classes(const ebnet_engine* engine) { return engine->engine->model().program.classes(); }

int ebnet_in_channels(const ebnet_engine* engine) { return engine->engine->model().program.in_channels; }

int ebnet_input_size(const ebnet_engine* engine) { return engine->engine->model().preprocessing.size; }

int ebnet_binary_layers(const ebnet_engine* engine) { return engine->engine->model().program.binary_layers(); }

const char* ebnet_label(const ebnet_engine* engine, int class_index) {
  const auto& labels = engine->engine->model().labels;
  const bool known = class_index >= 0 && static_cast<std::size_t>(class_index) < labels.size();
  return known ? labels[static_cast<std::size_t>(class_index)].c_str() : "";
}

const char* ebnet_isa(const ebnet_engine* engine) { return ebnet::isa_name(engine->engine->model().isa); }

int ebnet_plan(ebnet_engine* engine, int batch, int height, int width) {
  if (engine == nullptr) return missing("engine");
  return report(engine->engine->plan(batch, height, width));
}

int ebnet_run_f32(ebnet_engine* engine, const float* images, int batch, int height, int width, float* logits) {
  return run(engine, {images, nullptr, batch, height, width}, logits, nullptr);
}

int ebnet_run_u8(ebnet_engine* engine, const uint8_t* images, int batch, int height, int width, float* logits) {
  return run(engine, {nullptr, images, batch, height, width}, logits, nullptr);
}

int ebnet_experts_u8(ebnet_engine* engine, const uint8_t* images, int batch, int height, int width, float* logits,
                     int64_t* experts) {
  return run(engine, {nullptr, images, batch, height, width}, logits, experts);
}
