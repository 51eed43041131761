// Sizes one after another on one engine: sizes_test FILE SIDE...
// Every kernel of every instruction set that runs here (or is emulated, see EBNET_EMULATE) must give, at each size in
// turn and there and back again, bit for bit the logits and experts of the portable kernel in an engine that saw no
// other size.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace {

using ebnet::Isa;

struct Answer {
  std::vector<float> logits;
  std::vector<std::int64_t> experts;
  bool operator==(const Answer& other) const { return logits == other.logits && experts == other.experts; }
};

std::shared_ptr<const ebnet::Source> source;

std::unique_ptr<ebnet::Engine> load(const char* isa, const char* kernels) {
  setenv("EBNET_ISA", isa, 1);
  setenv("EBNET_KERNELS", kernels, 1);
  std::unique_ptr<ebnet::Engine> engine;
  const ebnet::Status status = ebnet::Engine::load(source, {}, &engine);
  if (!status) std::printf("%s, %s: %s\n", isa, kernels, status.message.c_str());
  return engine;
}

Answer run(ebnet::Engine& engine, int side) {
  const auto& program = engine.model().program;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(side * side * program.in_channels));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i * 31 >> 3);
  Answer answer;
  answer.logits.resize(static_cast<std::size_t>(program.classes()));
  answer.experts.resize(static_cast<std::size_t>(program.binary_layers()));
  ebnet::Images images;
  images.bytes = pixels.data();
  images.batch = 1;
  images.height = images.width = side;
  const ebnet::Status status = engine.run(images, {answer.logits.data(), answer.experts.data()});
  if (!status) std::printf("side %d: %s\n", side, status.message.c_str());
  return status ? answer : Answer{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  source = std::make_shared<ebnet::MemorySource>(content.data(), content.size());
  std::vector<int> sides;
  for (int i = 2; i < argc; ++i) sides.push_back(std::atoi(argv[i]));
  for (int i = argc - 1; i >= 2; --i) sides.push_back(std::atoi(argv[i]));

  int failures = 0;
  for (const Isa isa : {Isa::reference, Isa::portable, Isa::simd128, Isa::neon, Isa::avx2, Isa::avx512, Isa::amx}) {
    const char* name = ebnet::isa_name(isa);
    if (!ebnet::cpu_supports(isa)) {
      std::printf("%s: not run, this CPU lacks it\n", name);
      continue;
    }
    std::map<int, Answer> expected;
    for (const int side : sides) {
      if (expected.count(side) == 0) expected[side] = run(*load(name, "portable"), side);
    }
    std::vector<std::string> choices = {"fixed"};
    for (const ebnet::Kernel* kernel : ebnet::all_kernels()) {
      if (kernel->isa == isa) choices.emplace_back(kernel->name);
    }
    for (const std::string& choice : choices) {
      const auto engine = load(name, choice.c_str());
      int wrong = 0;
      for (const int side : sides) wrong += expected[side].logits.empty() || !(run(*engine, side) == expected[side]);
      std::printf("%s, %s: %d of %zu sizes wrong\n", name, choice.c_str(), wrong, sides.size());
      failures += wrong;
    }
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
