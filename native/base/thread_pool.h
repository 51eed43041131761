// A few persistent threads that share the items of one loop at a time with the caller.
//
// Between loops a worker watches for the next one for some microseconds (the ops of a network follow each other
// closely), then sleeps: an idle engine costs nothing. The caller never waits for a worker that has not yet joined.
#pragma once
#include <sys/types.h>

#include <memory>
#include <type_traits>

namespace ebnet {

class ThreadPool {
 public:
  // `threads` counts the caller; 1 starts none. Throws std::system_error where one cannot be started; those that were
  // started then end.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

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

  struct Shared;

  void share(int count, void* context, Call call);

  int threads_ = 1;
  pid_t process_;
  // In memory of its own: a child of fork() must not destroy what threads that it does not have were waiting on.
  std::unique_ptr<Shared> shared_;
};

}  // namespace ebnet
