// The engine under the sanitizers, without Python: engine_test FILE
// A good file runs at several sizes, batches and thread counts with equal results, and with every instruction set this CPU
// has; every truncation and many damaged copies give an error or run.
#include "engine/engine.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bconv/kernels.h"
#include "ebnet.h"
#include "engine/kernel_choice.h"
#include "engine/kernel_proof.h"

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

std::vector<float> run(ebnet::Engine& engine, int batch, int height, int width) {
  const auto& program = engine.model().program;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(batch * height * width * program.in_channels));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 2654435761u >> 11);
  std::vector<float> logits(static_cast<std::size_t>(batch * program.classes()));
  ebnet::Images images;
  images.bytes = pixels.data();
  images.batch = batch;
  images.height = height;
  images.width = width;
  const ebnet::Status status = engine.run(images, {logits.data()});
  if (!status) logits.clear();
  return logits;
}

void good_file(const std::string& content, ebnet::StreamType stream) {
  std::unique_ptr<ebnet::Engine> one, three;
  const auto source = std::make_shared<ebnet::MemorySource>(content.data(), content.size());
  expect(static_cast<bool>(ebnet::Engine::load(source, {1, stream, {}, {}}, &one)), "load with one thread");
  expect(static_cast<bool>(ebnet::Engine::load(source, {3, stream, {}, {}}, &three)), "load with three threads");
  if (one == nullptr || three == nullptr) return;
  for (const int side : {8, 1, 13, 6}) {
    for (const int batch : {1, 2, 11}) {
      const auto expected = run(*one, batch, side, side + 2);
      expect(!expected.empty(), "run");
      expect(run(*three, batch, side, side + 2) == expected, "three threads give what one gives");
    }
  }
}

void damaged_files(const std::string& content) {
  int accepted = 0;
  const auto attempt = [&](const std::string& damaged) {
    std::unique_ptr<ebnet::Engine> engine;
    if (!ebnet::Engine::load(std::make_shared<ebnet::MemorySource>(damaged.data(), damaged.size()), {}, &engine)) return;
    ++accepted;
    (void)run(*engine, 2, 6, 5);
  };
  for (std::size_t length = 0; length < content.size(); length += 13) attempt(content.substr(0, length));
  expect(accepted == 0, "truncated files are refused");
  std::uint32_t state = 1;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = content;
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      state = state * 1664525u + 1013904223u;
      damaged[(state >> 4) % damaged.size()] ^= static_cast<char>(1u << (state >> 29));
    }
    attempt(damaged);
  }
  std::printf("1500 damaged files: %d accepted\n", accepted);
}

// Bytes that are changed, or cut off, after they were loaded.
class ChangingSource : public ebnet::Source {
 public:
  explicit ChangingSource(std::string content) : content_(std::move(content)), size_(content_.size()) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, void* destination, std::size_t count) const override {
    ebnet::MemorySource(content_.data(), content_.size()).read(offset, destination, count);
  }
  std::string content_;

 private:
  std::size_t size_;
};

void changed_files(const std::string& content) {
  const auto error_after = [&](auto change) {
    const auto source = std::make_shared<ChangingSource>(content);
    std::unique_ptr<ebnet::Engine> engine;
    expect(static_cast<bool>(ebnet::Engine::load(source, {}, &engine)), "load before the change");
    change(source->content_);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(8 * 8 * engine->model().program.in_channels));
    std::vector<float> logits(static_cast<std::size_t>(engine->model().program.classes()));
    ebnet::Images images;
    images.bytes = pixels.data();
    images.batch = 1;
    images.height = images.width = 8;
    const ebnet::Status status = engine->run(images, {logits.data()});
    expect(static_cast<bool>(engine->run(images, {logits.data()})) == static_cast<bool>(status), "the same again");
    return status.error;
  };
  expect(error_after([](std::string&) {}) == ebnet::Error::Ok, "an unchanged file runs");
  const auto flipped = error_after([](std::string& bytes) {
    for (char& byte : bytes) byte = static_cast<char>(byte ^ 1);
  });
  expect(flipped == ebnet::Error::FileChanged, "a changed file is noticed");
  const auto filled = error_after([](std::string& bytes) { bytes.assign(bytes.size(), '\xff'); });
  expect(filled == ebnet::Error::TensorPaddingNotZero || filled == ebnet::Error::FileChanged, "padding is read again");
  const auto cut = error_after([](std::string& bytes) { bytes.resize(16); });
  expect(cut == ebnet::Error::FileTruncated, "a file that was cut off is noticed");
}

// The portable kernel in another's clothes, with one wrong bit in the last pixel of what it writes.
void run_wrong(const ebnet::ConvTask& task) {
  ebnet::kPortableKernel.run(task);
  if (task.row_end < task.shape->out_h() || task.row_begin == task.row_end || task.epilogue->bits == nullptr) return;
  const auto pixels = static_cast<std::size_t>(task.shape->out_h() * task.shape->out_w());
  const int channels = task.shape->out_channels;
  task.epilogue->bits[pixels * ebnet::bit_words_per_pixel(channels, task.epilogue->bits_per_group) - 1] ^= 1;
}

void wrong_kernels() {
  const ebnet::Kernel& good = ebnet::kPortableKernel;
  static const ebnet::Kernel wrong = {"wrong",       ebnet::Isa::avx2,  good.supports,
                                      good.prepare,  good.scratch_bytes, run_wrong};
  static const ebnet::Kernel right = {"right",       ebnet::Isa::avx2,  good.supports,
                                      good.prepare,  good.scratch_bytes, good.run};
  ebnet::ConvShape shape;
  shape.in_channels = shape.out_channels = 40;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad_h = shape.pad_w = 1;
  shape.in_h = shape.in_w = 9;
  static const std::vector<const ebnet::Kernel*> alone = {&good, &wrong}, both = {&good, &right, &wrong};
  for (const char* how : {"measured", "fixed"}) {
    setenv("EBNET_KERNELS", how, 1);
    (void)ebnet::take_kernel_notices();
    ebnet::KernelChoice without(ebnet::Isa::avx2, "", alone);
    expect(&without.choose(shape) == &good, "a wrong kernel gives way to the portable one");
    ebnet::KernelChoice with(ebnet::Isa::avx2, "", both);
    expect(&with.choose(shape) == &right, "a wrong kernel gives way to a right one of its set");
    shape.in_w += 1;
    expect(&with.choose(shape) == &right, "at another size too");
    const std::size_t said = ebnet::take_kernel_notices().size();
    expect(said == (std::string(how) == "measured" ? 1u : 0u), "a wrong kernel is named once");
  }
  unsetenv("EBNET_KERNELS");
}

// Their real-valued layers add in different orders, so logits are equal up to rounding.
void instruction_sets(const std::string& content) {
  using ebnet::Isa;
  const auto source = std::make_shared<ebnet::MemorySource>(content.data(), content.size());
  std::vector<float> expected;
  for (const Isa isa : {Isa::reference, Isa::portable, Isa::simd128, Isa::neon, Isa::avx2, Isa::avx512, Isa::amx}) {
    if (!ebnet::cpu_supports(isa)) {
      std::printf("%s: not run, this CPU lacks it\n", ebnet::isa_name(isa));
      continue;
    }
    setenv("EBNET_ISA", ebnet::isa_name(isa), 1);
    std::unique_ptr<ebnet::Engine> engine;
    expect(static_cast<bool>(ebnet::Engine::load(source, {}, &engine)), "load with an instruction set");
    if (engine == nullptr) continue;
    expect(engine->model().isa == isa, "the instruction set that was asked for");
    const std::vector<float> logits = run(*engine, 4, 13, 40);
    if (isa == Isa::reference) expected = logits;
    bool close = !logits.empty() && logits.size() == expected.size();
    for (std::size_t i = 0; close && i < logits.size(); ++i) {
      close = std::fabs(logits[i] - expected[i]) <= 1e-4f * (1.0f + std::fabs(expected[i]));
    }
    expect(close, "an instruction set gives the reference's logits");
    std::printf("%s: ran\n", ebnet::isa_name(isa));
  }
  unsetenv("EBNET_ISA");
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("ebnet %s\n", ebnet_version());
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const auto stream : {ebnet::StreamType::fp32, ebnet::StreamType::fp16, ebnet::StreamType::bf16}) {
    good_file(content, stream);
  }
  damaged_files(content);
  changed_files(content);
  instruction_sets(content);
  wrong_kernels();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
