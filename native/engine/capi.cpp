#include <cstring>
#include <string>

#include "ebnet.h"
#include "engine/engine.h"
#include "engine/kernel_proof.h"

struct ebnet_engine {
  std::unique_ptr<ebnet::Engine> engine;
};

struct ebnet_session {
  std::unique_ptr<ebnet::Session> session;
};

namespace {

using ebnet::Error;

thread_local std::string last_error, last_notice;

int report(const ebnet::Status& status) noexcept {
  try {
    if (!status) last_error = std::string(ebnet::error_name(status.error)) + ": " + status.message;
  } catch (...) {
    // No memory for the sentence; the number still tells.
  }
  return static_cast<int>(status.error);
}

int missing(const char* what) {
  return report(ebnet::guarded([&] { ebnet::fail(Error::ArgumentInvalid, std::string(what) + " is NULL"); }));
}

// The caller's options over the defaults, as many as it knows of. Throws ArgumentInvalid.
ebnet::Options options_of(const ebnet_options* given) {
  ebnet_options known = EBNET_OPTIONS_INIT;
  if (given != nullptr) {
    const std::size_t size = given->struct_size;
    if (size < sizeof size || size > sizeof known) {
      ebnet::fail(Error::ArgumentInvalid, "struct_size=" + std::to_string(size) + ": expected at most " +
                                              std::to_string(sizeof known) + ", as EBNET_OPTIONS_INIT sets it");
    }
    std::memcpy(&known, given, size);
  }
  if (known.stream < EBNET_STREAM_FP32 || known.stream > EBNET_STREAM_BF16) {
    ebnet::fail(Error::ArgumentInvalid, "stream=" + std::to_string(known.stream) + ": expected 0 to 2");
  }
  if (known.limit_side < 0 || known.limit_side > 1 << 15) {
    ebnet::fail(Error::ArgumentInvalid, "limit_side=" + std::to_string(known.limit_side) + ": expected 0 to 32768");
  }
  ebnet::Options options;
  options.threads = known.threads;
  options.stream = static_cast<ebnet::StreamType>(known.stream);
  if (known.cache_dir != nullptr) options.cache = known.cache_dir;
  options.limits.set(known.limit_work, known.limit_memory, known.limit_side);
  return options;
}

template <class Source>
int load(const ebnet_options* options, ebnet_engine** engine, Source&& source) {
  if (engine == nullptr) return missing("engine");
  *engine = nullptr;
  ebnet::Status status;
  const ebnet::Status made = ebnet::guarded([&] {
    auto handle = std::make_unique<ebnet_engine>();
    status = ebnet::Engine::load(source(), options_of(options), &handle->engine);
    if (status) *engine = handle.release();
  });
  return report(made ? status : made);
}

ebnet_options with_threads(int threads) {
  ebnet_options options = EBNET_OPTIONS_INIT;
  options.threads = threads;
  return options;
}

int run(ebnet_engine* engine, const ebnet::Images& images, float* logits, int64_t* experts) {
  if (engine == nullptr) return missing("engine");
  return report(engine->engine->run(images, {logits, experts}));
}

int run(ebnet_session* session, const ebnet::Images& images, float* logits, int64_t* experts) {
  if (session == nullptr) return missing("session");
  return report(session->session->run(images, {logits, experts}));
}

}  // namespace

const char* ebnet_version(void) { return EBNET_VERSION; }

const char* ebnet_error_name(int error) { return ebnet::error_name(static_cast<Error>(error)); }

const char* ebnet_last_error(void) { return last_error.c_str(); }

const char* ebnet_notice(void) {
  (void)ebnet::guarded([] {
    last_notice.clear();
    for (const std::string& notice : ebnet::take_kernel_notices()) {
      last_notice += (last_notice.empty() ? "" : "\n") + notice;
    }
  });
  return last_notice.c_str();
}

int ebnet_load(const char* path, int threads, ebnet_engine** engine) {
  const ebnet_options options = with_threads(threads);
  return ebnet_load_with(path, &options, engine);
}

int ebnet_load_with(const char* path, const ebnet_options* options, ebnet_engine** engine) {
  if (engine != nullptr) *engine = nullptr;
  if (path == nullptr) return missing("path");
  return load(options, engine, [&] { return std::make_shared<ebnet::FileSource>(path); });
}

int ebnet_load_memory(const void* data, size_t size, int threads, ebnet_engine** engine) {
  const ebnet_options options = with_threads(threads);
  return ebnet_load_memory_with(data, size, &options, engine);
}

int ebnet_load_memory_with(const void* data, size_t size, const ebnet_options* options, ebnet_engine** engine) {
  if (engine != nullptr) *engine = nullptr;
  if (data == nullptr) return missing("data");
  return load(options, engine, [&] { return std::make_shared<ebnet::MemorySource>(data, size); });
}

void ebnet_free(ebnet_engine* engine) { delete engine; }

int ebnet_classes(const ebnet_engine* engine) {
  return engine == nullptr ? 0 : engine->engine->model().program.classes();
}

int ebnet_in_channels(const ebnet_engine* engine) {
  return engine == nullptr ? 0 : engine->engine->model().program.in_channels;
}

int ebnet_input_size(const ebnet_engine* engine) {
  return engine == nullptr ? 0 : engine->engine->model().preprocessing.size;
}

int ebnet_binary_layers(const ebnet_engine* engine) {
  return engine == nullptr ? 0 : engine->engine->model().program.binary_layers();
}

const char* ebnet_label(const ebnet_engine* engine, int class_index) {
  if (engine == nullptr) return "";
  const auto& labels = engine->engine->model().labels;
  const bool known = class_index >= 0 && static_cast<std::size_t>(class_index) < labels.size();
  return known ? labels[static_cast<std::size_t>(class_index)].c_str() : "";
}

const char* ebnet_isa(const ebnet_engine* engine) {
  return engine == nullptr ? "" : ebnet::isa_name(engine->engine->model().isa);
}

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

int ebnet_session_open(ebnet_engine* engine, ebnet_session** session) {
  if (session == nullptr) return missing("session");
  *session = nullptr;
  if (engine == nullptr) return missing("engine");
  ebnet::Status status;
  const ebnet::Status made = ebnet::guarded([&] {
    auto handle = std::make_unique<ebnet_session>();
    status = engine->engine->open(&handle->session);
    if (status) *session = handle.release();
  });
  return report(made ? status : made);
}

void ebnet_session_free(ebnet_session* session) { delete session; }

int ebnet_session_run_f32(ebnet_session* session, const float* images, int batch, int height, int width, float* logits,
                          int64_t* experts) {
  return run(session, {images, nullptr, batch, height, width}, logits, experts);
}

int ebnet_session_run_u8(ebnet_session* session, const uint8_t* images, int batch, int height, int width,
                         float* logits, int64_t* experts) {
  return run(session, {nullptr, images, batch, height, width}, logits, experts);
}

void ebnet_session_cancel(ebnet_session* session) {
  if (session != nullptr) session->session->cancel();
}

size_t ebnet_session_bytes(ebnet_session* session) { return session == nullptr ? 0 : session->session->bytes(); }
