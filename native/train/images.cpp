#include "train/images.h"

#include <algorithm>
#include <cstring>

#include "train/threads.h"

namespace ebnet {
namespace {

std::size_t size(int value) { return static_cast<std::size_t>(value); }

template <typename Run>
void for_images_on_threads(int batch, int threads, Run run) {
  const int parts = std::max(1, std::min(threads, batch));
  on_threads(parts, [&](int part) {
    const auto cut = [&](int p) { return static_cast<int>(static_cast<std::int64_t>(batch) * p / parts); };
    for (int image = cut(part); image < cut(part + 1); ++image) run(image);
  });
}

// Pixels of kChannels bytes (0: known only at run time) from right to left.
template <int kChannels>
void copy_mirrored(const std::uint8_t* from, int count, int channels, std::uint8_t* to) {
  const int bytes = kChannels > 0 ? kChannels : channels;
  for (int x = 0; x < count; ++x) {
    for (int c = 0; c < bytes; ++c) to[x * bytes + c] = from[(count - 1 - x) * bytes + c];
  }
}

template <int kChannels>
void normalise_image(const NormaliseBatch& task, const std::uint8_t* from, float* to) {
  const std::size_t channels = kChannels > 0 ? size(kChannels) : size(task.channels);
  for (std::size_t place = 0; place < task.places; ++place) {
    for (std::size_t c = 0; c < channels; ++c) to[c * task.places + place] = task.table[c * 256 + from[place * channels + c]];
  }
}

}  // namespace

void crop_batch(const CropBatch& task, int threads) {
  const std::size_t row = size(task.size) * size(task.channels), image = size(task.size) * row;
  for_images_on_threads(task.batch, threads, [&](int i) {
    const std::uint8_t* from = task.images + static_cast<std::size_t>(task.indices[i]) * image;
    std::uint8_t* to = task.out + size(i) * image;
    const int down = static_cast<int>(task.corners[2 * i]) - task.padding;
    const int right = static_cast<int>(task.corners[2 * i + 1]) - task.padding;
    // The columns of the crop that show the image, before mirroring.
    const int begin = std::clamp(-right, 0, task.size), end = std::clamp(task.size - right, begin, task.size);
    const bool mirrored = task.mirrored[i] != 0;
    const int left = mirrored ? task.size - end : begin;
    for (int y = 0; y < task.size; ++y, to += row) {
      const int source = y + down;
      if (source < 0 || source >= task.size) {
        std::memset(to, 0, row);
        continue;
      }
      const std::uint8_t* pixels = from + size(source) * row + size(begin + right) * size(task.channels);
      std::uint8_t* shown = to + size(left) * size(task.channels);
      std::memset(to, 0, size(left) * size(task.channels));
      if (!mirrored) {
        std::memcpy(shown, pixels, size(end - begin) * size(task.channels));
      } else {
        (task.channels == 3 ? copy_mirrored<3> : copy_mirrored<0>)(pixels, end - begin, task.channels, shown);
      }
      std::uint8_t* behind = shown + size(end - begin) * size(task.channels);
      std::memset(behind, 0, static_cast<std::size_t>(to + row - behind));
    }
  });
}

void normalise_batch(const NormaliseBatch& task, int threads) {
  const std::size_t image = task.places * size(task.channels);
  for_images_on_threads(task.batch, threads, [&](int i) {
    const auto run = task.channels == 1 ? normalise_image<1> : task.channels == 3 ? normalise_image<3> : normalise_image<0>;
    run(task, task.from + size(i) * image, task.to + size(i) * image);
  });
}

}  // namespace ebnet
