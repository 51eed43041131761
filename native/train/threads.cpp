#include "train/threads.h"

#include <memory>
#include <mutex>

#include "base/aligned.h"
#include "base/thread_pool.h"

namespace ebnet {

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
  if (bytes.size() < floats * sizeof(float)) bytes = AlignedBytes(floats * sizeof(float));
  return bytes.as<float>();
}

}  // namespace ebnet
