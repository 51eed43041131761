// What a network says of pixels, for comparison between machines:  logits net.ebn pixels.u8 height width [times]
// Prints the kernels' instruction set, one line of logits as hexadecimal floats, and one of the chosen experts.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "ebnet.h"

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  const int times = argc == 6 ? std::atoi(argv[5]) : 1;
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> pixels((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const int height = std::atoi(argv[3]), width = std::atoi(argv[4]);
  ebnet_engine* engine = nullptr;
  if (ebnet_load(argv[1], 1, &engine) != EBNET_OK) {
    std::fprintf(stderr, "%s\n", ebnet_last_error());
    return 1;
  }
  const std::size_t expected = static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
                               static_cast<std::size_t>(ebnet_in_channels(engine));
  if (pixels.size() != expected) return 2;
  std::vector<float> logits(static_cast<std::size_t>(ebnet_classes(engine)));
  std::vector<std::int64_t> experts(static_cast<std::size_t>(ebnet_binary_layers(engine)));
  for (int i = 0; i < times; ++i) {
    if (ebnet_experts_u8(engine, reinterpret_cast<const std::uint8_t*>(pixels.data()), 1, height, width, logits.data(),
                         experts.data()) != EBNET_OK) {
      std::fprintf(stderr, "%s\n", ebnet_last_error());
      return 1;
    }
  }
  std::printf("%s\n", ebnet_isa(engine));
  for (const float logit : logits) std::printf("%a ", static_cast<double>(logit));
  std::printf("\n");
  for (const std::int64_t expert : experts) std::printf("%d ", static_cast<int>(expert));
  std::printf("\n");
  ebnet_free(engine);
  return 0;
}
