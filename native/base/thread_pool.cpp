#include "base/thread_pool.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

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

struct ThreadPool::Shared {
  void work(int thread);
  void serve(int thread);
  void stop();

  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::atomic<unsigned> generation{0};
  std::atomic<int> joined{0};
  std::atomic<int> next{0};
  bool open = false;
  bool stopping = false;
  int sleeping = 0;
  int count = 0;
  void* context = nullptr;
  Call call = nullptr;
};

ThreadPool::ThreadPool(int threads) : process_(::getpid()), shared_(std::make_unique<Shared>()) {
  Shared* shared = shared_.get();
  try {
    shared->workers.reserve(static_cast<std::size_t>(threads - 1));
    for (int thread = 1; thread < threads; ++thread) {
      shared->workers.emplace_back([shared, thread] { shared->serve(thread); });
    }
  } catch (...) {
    shared->stop();
    throw;
  }
  threads_ = threads;
}

ThreadPool::~ThreadPool() {
  if (process_ != ::getpid()) {
    // After a fork the threads do not exist in the child: nothing to join, and nothing that may be destroyed.
    (void)shared_.release();
    return;
  }
  shared_->stop();
}

void ThreadPool::Shared::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
    generation.fetch_add(1);
  }
  wake.notify_all();
  for (std::thread& worker : workers) worker.join();
}

void ThreadPool::share(int count, void* context, Call call) {
  if (process_ != ::getpid()) {
    for (int item = 0; item < count; ++item) call(context, item, 0);
    return;
  }
  Shared& shared = *shared_;
  bool asleep = false;
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    shared.count = count;
    shared.context = context;
    shared.call = call;
    shared.next.store(0);
    shared.open = true;
    shared.generation.fetch_add(1);
    asleep = shared.sleeping > 0;
  }
  if (asleep) shared.wake.notify_all();
  shared.work(0);
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    shared.open = false;
  }
  const auto all_left = [&shared] { return shared.joined.load(std::memory_order_acquire) == 0; };
  if (watch(all_left)) return;
  std::unique_lock<std::mutex> lock(shared.mutex);
  shared.finished.wait(lock, all_left);
}

void ThreadPool::Shared::work(int thread) {
  for (int item = next.fetch_add(1); item < count; item = next.fetch_add(1)) call(context, item, thread);
}

void ThreadPool::Shared::serve(int thread) {
  unsigned seen = 0;
  for (;;) {
    const bool came = watch([&] { return generation.load(std::memory_order_acquire) != seen; });
    {
      std::unique_lock<std::mutex> lock(mutex);
      if (!came) {
        ++sleeping;
        wake.wait(lock, [&] { return generation.load() != seen; });
        --sleeping;
      }
      seen = generation.load();
      if (stopping) return;
      if (!open) continue;
      joined.fetch_add(1);
    }
    work(thread);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (joined.fetch_sub(1, std::memory_order_acq_rel) == 1) finished.notify_one();
    }
  }
}

}  // namespace ebnet
