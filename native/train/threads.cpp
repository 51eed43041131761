#include "train/threads.h"

#include <memory>
#include <mutex>

#include "base/aligned.h"
#include "base/thread_pool.h"

namespace ebnet {
namespace {

float* at_least(AlignedBytes& bytes, std::size_t floats) {
  if (bytes.size() < floats * sizeof(float)) {
    bytes = AlignedBytes();  // the old ones go before the new ones come
    bytes = AlignedBytes(floats * sizeof(float));
  }
  return bytes.as<float>();
}

}  // namespace

void on_threads(int parts, const std::function<void(int)>& body) {
  static std::mutex mutex;
  static std::unique_ptr<ThreadPool> pool;
  if (parts == 1) return body(0);
  const std::lock_guard<std::mutex> lock(mutex);
  if (pool == nullptr || pool->threads() < parts) pool = std::make_unique<ThreadPool>(parts);
  pool->loop(parts, [&](int part, int) { body(part); });
}

float* scratch(std::size_t floats) {
  thread_local AlignedBytes bytes;
  return at_least(bytes, floats);
}

float* shared_scratch(std::size_t floats) {
  thread_local AlignedBytes bytes;
  return at_least(bytes, floats);
}

}  // namespace ebnet
