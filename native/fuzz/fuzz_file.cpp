// libFuzzer on the whole path of a hostile file: read, verify, plan, run. A file either gives a named error or an
// engine that runs; the sanitizers watch. See run.sh.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/engine.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// Small enough that an accepted file runs in well under a millisecond.
ebnet::Limits small_limits() {
  ebnet::Limits limits;
  limits.header_bytes = 1 << 15;
  limits.ops = 32;
  limits.channels = 128;
  limits.kernel = 7;
  limits.stride = 4;
  limits.dilation = 3;
  limits.experts = 8;
  limits.side = 32;
  limits.trained_side = 32;
  limits.memory = 1 << 21;
  limits.work = 1 << 18;
  return limits;
}

constexpr std::size_t kLengthBytes = 8;

std::uint64_t header_length(const std::uint8_t* data) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(data[i]) << (8 * i);
  return length;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::unique_ptr<ebnet::Engine> engine;
  const ebnet::Options options = {1, static_cast<ebnet::StreamType>(size % 3), small_limits(), ""};
  const auto source = std::make_shared<ebnet::MemorySource>(data, size);
  if (!ebnet::Engine::load(source, options, &engine)) return 0;
  const auto channels = static_cast<std::size_t>(engine->model().program.in_channels);
  std::vector<float> logits(2 * static_cast<std::size_t>(engine->model().program.classes()));
  std::vector<std::int64_t> experts(2 * static_cast<std::size_t>(engine->model().program.binary_layers()));
  for (const int side : {8, 5, 1}) {
    const int width = side + 1;
    std::vector<std::uint8_t> pixels(2 * channels * static_cast<std::size_t>(side * width));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
    ebnet::Images images;
    images.bytes = pixels.data();
    images.batch = 2;
    images.height = side;
    images.width = width;
    (void)engine->run(images, {logits.data(), experts.data()});
  }
  return 0;
}

// Half of the mutations change only the header and set its length again, so that they get past the container.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  const bool whole = size < kLengthBytes || header_length(data) > size - kLengthBytes;
  if (whole || seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto length = static_cast<std::size_t>(header_length(data));
  std::vector<std::uint8_t> header(data + kLengthBytes, data + kLengthBytes + length);
  const std::vector<std::uint8_t> tail(data + kLengthBytes + length, data + size);
  if (kLengthBytes + tail.size() >= max_size) return LLVMFuzzerMutate(data, size, max_size);
  const std::size_t room = max_size - kLengthBytes - tail.size();
  header.resize(std::max(room, length));
  const std::size_t grown = LLVMFuzzerMutate(header.data(), length, room);
  for (std::size_t i = 0; i < kLengthBytes; ++i) data[i] = static_cast<std::uint8_t>(std::uint64_t{grown} >> (8 * i));
  std::memcpy(data + kLengthBytes, header.data(), grown);
  if (!tail.empty()) std::memcpy(data + kLengthBytes + grown, tail.data(), tail.size());
  return kLengthBytes + grown + tail.size();
}
