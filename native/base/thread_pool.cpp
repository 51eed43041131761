#include "base/thread_pool.h"

#include <unistd.h>

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ebnet {

namespace {

constexpr auto kWatch = std::chrono::microseconds(30);

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits a little for `done()`; false where it did not come.
template <class Done>
bool watch(Done&& done) {
  const auto until = std::chrono::steady_clock::now() + kWatch;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int threads) : workers_(std::make_unique<std::vector<std::thread>>()), process_(::getpid()) {
  for (int thread = 1; thread < threads; ++thread) workers_->emplace_back([this, thread] { serve(thread); });
}

ThreadPool::~ThreadPool() {
  if (process_ != ::getpid()) {
    // After a fork the threads do not exist in the child: nothing to join, and nothing that may be destroyed.
    workers_.release();
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : *workers_) worker.join();
}

void ThreadPool::share(int count, void* context, Call call) {
  if (process_ != ::getpid()) {
    for (int item = 0; item < count; ++item) call(context, item, 0);
    return;
  }
  bool asleep = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    count_ = count;
    context_ = context;
    call_ = call;
    next_.store(0);
    open_ = true;
    generation_.fetch_add(1);
    asleep = sleeping_ > 0;
  }
  if (asleep) wake_.notify_all();
  work(0);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = false;
  }
  if (watch([this] { return joined_.load(std::memory_order_acquire) == 0; })) return;
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait(lock, [this] { return joined_.load() == 0; });
}

void ThreadPool::work(int thread) {
  for (int item = next_.fetch_add(1); item < count_; item = next_.fetch_add(1)) call_(context_, item, thread);
}

void ThreadPool::serve(int thread) {
  unsigned seen = 0;
  for (;;) {
    const bool came = watch([&] { return generation_.load(std::memory_order_acquire) != seen; });
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!came) {
        ++sleeping_;
        wake_.wait(lock, [&] { return generation_.load() != seen; });
        --sleeping_;
      }
      seen = generation_.load();
      if (stopping_) return;
      if (!open_) continue;
      joined_.fetch_add(1);
    }
    work(thread);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (joined_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.notify_one();
    }
  }
}

}  // namespace ebnet
