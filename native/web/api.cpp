// What JavaScript calls: load a packed network from memory, ask what it is, run it. web/src/core.js is the other side.
// Buffers are the caller's, made by malloc; nothing throws across the border. A page has one network a worker, so the
// last error is one for all.
#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace {

using ebnet::Engine;

std::string last_error;

int report(const ebnet::Status& status) noexcept {
  try {
    if (!status) last_error = std::string(ebnet::error_name(status.error)) + ": " + status.message;
  } catch (...) {
    // No memory for the sentence; the number still tells.
  }
  return static_cast<int>(status.error);
}

}  // namespace

#define EBNET_EXPORT(name) __attribute__((export_name(#name))) name

extern "C" {

const char* EBNET_EXPORT(ebnet_last_error)() { return last_error.c_str(); }

// The bytes are copied. One thread: more are more engines, each in a worker with a memory of its own, so that no page has
// to be isolated from others for it.
int EBNET_EXPORT(ebnet_open)(const void* data, std::size_t size, Engine** engine) {
  *engine = nullptr;
  ebnet::Status status;
  const ebnet::Status made = ebnet::guarded([&] {
    std::unique_ptr<Engine> loaded;
    status = Engine::load(std::make_shared<ebnet::MemorySource>(data, size), {1, {}, {}}, &loaded);
    *engine = loaded.release();
  });
  return report(made ? status : made);
}

void EBNET_EXPORT(ebnet_close)(Engine* engine) { delete engine; }

int EBNET_EXPORT(ebnet_classes)(const Engine* engine) { return engine->model().program.classes(); }
int EBNET_EXPORT(ebnet_binary_layers)(const Engine* engine) { return engine->model().program.binary_layers(); }
const char* EBNET_EXPORT(ebnet_isa)(const Engine* engine) { return ebnet::isa_name(engine->model().isa); }

// "" where the file has no labels.
const char* EBNET_EXPORT(ebnet_label)(const Engine* engine, int index) {
  const auto& labels = engine->model().labels;
  return static_cast<std::size_t>(index) < labels.size() ? labels[static_cast<std::size_t>(index)].c_str() : "";
}

// The file's own JSON, verified when it was read.
const char* EBNET_EXPORT(ebnet_preprocessing)(const Engine* engine) { return engine->model().preprocessing_text.c_str(); }
const char* EBNET_EXPORT(ebnet_program)(const Engine* engine) { return engine->model().program_text.c_str(); }
const char* EBNET_EXPORT(ebnet_network)(const Engine* engine) { return engine->model().network_text.c_str(); }

// Images [batch][height][width][channels] of bytes, or normalised ones [batch][channels][height][width]: one of the two
// is given. Logits go to [batch][classes], the chosen experts to [binary layers][batch].
int EBNET_EXPORT(ebnet_run)(Engine* engine, const float* reals, const std::uint8_t* bytes, int batch, int height,
                            int width, float* logits, std::int64_t* experts) {
  return report(engine->run({reals, bytes, batch, height, width}, {logits, experts}));
}

}  // extern "C"
