// Many threads on one model, for ThreadSanitizer: threads_test FILE [seconds]
// Eight callers on one engine at sizes in turn, while others open sessions of their own, run, cancel and close them, and
// engines are loaded and freed. Every answer must be that of an engine alone.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace {

constexpr int kCallers = 8, kBatch = 3;
const std::vector<int> kSides = {8, 13, 24};

std::atomic<int> failures{0}, runs{0};
std::map<int, std::vector<float>> expected;

template <class Runner>
ebnet::Status run(Runner& runner, const ebnet::Model& model, int side, std::vector<float>* logits) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kBatch * side * side * model.program.in_channels));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 31 >> 2);
  logits->assign(static_cast<std::size_t>(kBatch * model.program.classes()), 0.0f);
  std::vector<std::int64_t> experts(static_cast<std::size_t>(kBatch * model.program.binary_layers()));
  ebnet::Images images;
  images.bytes = pixels.data();
  images.batch = kBatch;
  images.height = images.width = side;
  ++runs;
  return runner.run(images, {logits->data(), experts.data()});
}

void check(const ebnet::Status& status, const std::vector<float>& logits, int side, bool may_be_cancelled) {
  if (may_be_cancelled && status.error == ebnet::Error::Cancelled) return;
  if (status && logits == expected[side]) return;
  std::printf("side %d: %s\n", side, status ? "wrong logits" : status.message.c_str());
  ++failures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto source = std::make_shared<ebnet::FileSource>(argv[1]);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 5);
  const auto going = [&] { return std::chrono::steady_clock::now() < until; };
  ebnet::Options options;
  options.cache = "";
  std::unique_ptr<ebnet::Engine> alone, engine;
  if (!ebnet::Engine::load(source, options, &alone)) return 2;
  for (const int side : kSides) {
    if (!run(*alone, alone->model(), side, &expected[side])) return 2;
  }
  options.threads = 2;
  if (!ebnet::Engine::load(source, options, &engine)) return 2;

  std::vector<std::thread> threads;
  for (int caller = 0; caller < kCallers; ++caller) {
    threads.emplace_back([&, caller] {
      std::vector<float> logits;
      for (int turn = caller; going(); ++turn) {
        const int side = kSides[static_cast<std::size_t>(turn) % kSides.size()];
        const ebnet::Status status = run(*engine, engine->model(), side, &logits);
        check(status, logits, side, false);
      }
    });
  }
  threads.emplace_back([&] {  // sessions that come and go, cancelled now and then
    std::vector<float> logits;
    for (int turn = 0; going(); ++turn) {
      std::unique_ptr<ebnet::Session> session;
      if (!engine->open(&session)) ++failures;
      const int side = kSides[static_cast<std::size_t>(turn) % kSides.size()];
      std::thread other([&] {
        if (turn % 2 == 0) session->cancel();
      });
      const ebnet::Status status = run(*session, engine->model(), side, &logits);
      other.join();
      check(status, logits, side, true);
      (void)session->bytes();
    }
  });
  threads.emplace_back([&] {  // engines that come and go
    std::vector<float> logits;
    while (going()) {
      std::unique_ptr<ebnet::Engine> fresh;
      if (!ebnet::Engine::load(source, options, &fresh)) ++failures;
      const ebnet::Status status = run(*fresh, fresh->model(), kSides[0], &logits);
      check(status, logits, kSides[0], false);
      std::vector<std::string> names;
      (void)fresh->kernels(&names);
    }
  });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d runs, %d failures\n", runs.load(), failures.load());
  return failures == 0 ? 0 : 1;
}
