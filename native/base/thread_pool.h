// A few persistent threads that share the items of one loop at a time with the caller.
//
// Between loops a worker watches for the next one for some microseconds (the ops of a network follow each other
// closely), then sleeps: an idle engine costs nothing. The caller never waits for a worker that has not yet joined.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ebnet {

class ThreadPool {
 public:
  // `threads` counts the caller; 1 starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_->size()) + 1; }

  // body(item, thread) for every item in [0, count); thread < threads(). The body must not throw. One loop at a time.
  template <class Body>
  void loop(int count, Body&& body) {
    if (count <= 1 || threads() == 1) {
      for (int item = 0; item < count; ++item) body(item, 0);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    share(count, const_cast<void*>(static_cast<const void*>(&body)),
          [](void* context, int item, int thread) { (*static_cast<Plain*>(context))(item, thread); });
  }

 private:
  using Call = void (*)(void* context, int item, int thread);

  void share(int count, void* context, Call call);
  void work(int thread);
  void serve(int thread);

  std::unique_ptr<std::vector<std::thread>> workers_;
  pid_t process_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<unsigned> generation_{0};
  std::atomic<int> joined_{0};
  std::atomic<int> next_{0};
  bool open_ = false;
  bool stopping_ = false;
  int sleeping_ = 0;
  int count_ = 0;
  void* context_ = nullptr;
  Call call_ = nullptr;
};

}  // namespace ebnet
