// Along each axis an output pixel is a weighted mean of the input pixels under a triangle of half width
// support = max(1, scale) around its centre, with scale = box / size:
//
//   centre = begin + (o + 0.5) scale,  weight(i) = 1 - abs(i + 0.5 - centre) / support where positive, normalised to sum 1
//
// Pillow rounds the weights to 22 bits behind the point and, to bytes, the rows between its two passes; so does this, in
// the same order of the same operations, and the bytes are equal.
#include "train/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/threads.h"

namespace ebnet {
namespace {

constexpr int kBits = 22;
constexpr std::int32_t kHalf = 1 << (kBits - 1);

std::size_t size(int value) { return static_cast<std::size_t>(value); }

std::uint8_t byte_of(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

// The input pixels [first, first + count) of each output pixel and their weights.
struct Weights {
  Weights(int in, float begin, float end, int out) : first(size(out)), count(size(out)) {
    const double scale = static_cast<double>(end - begin) / out, support = std::max(1.0, scale);
    most = static_cast<int>(std::ceil(support)) * 2 + 1;
    weights.resize(size(out) * size(most));
    std::vector<double> exact(size(most));
    for (int o = 0; o < out; ++o) {
      const double centre = static_cast<double>(begin) + (o + 0.5) * scale;
      const int low = std::max(0, static_cast<int>(centre - support + 0.5));
      const int high = std::min(in, static_cast<int>(centre + support + 0.5));
      double total = 0.0;
      for (int i = low; i < high; ++i) {
        const double far = std::fabs((i - centre + 0.5) * (1.0 / support));
        exact[size(i - low)] = far < 1.0 ? 1.0 - far : 0.0;
        total += exact[size(i - low)];
      }
      for (int i = 0; i < high - low; ++i) {
        const double weight = total == 0.0 ? exact[size(i)] : exact[size(i)] / total;
        weights[size(o) * size(most) + size(i)] = static_cast<std::int32_t>(0.5 + weight * (1 << kBits));
      }
      first[size(o)] = low, count[size(o)] = high - low;
    }
  }
  const std::int32_t* of(int o) const { return weights.data() + size(o) * size(most); }

  int most;
  std::vector<int> first, count;
  std::vector<std::int32_t> weights;
};

// One row of the image to one of `size` pixels.
template <int kChannels>
void resize_row(const Weights& weights, const std::uint8_t* row, int out, bool mirrored, std::uint8_t* to) {
  const std::int32_t* weight = weights.weights.data();
  for (int o = 0; o < out; ++o, weight += weights.most) {
    const std::uint8_t* from = row + weights.first[size(o)] * kChannels;
    std::int32_t sums[kChannels];
    for (int c = 0; c < kChannels; ++c) sums[c] = kHalf;
    for (int i = 0; i < weights.count[size(o)]; ++i, from += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += from[c] * weight[i];
    }
    std::uint8_t* pixel = to + (mirrored ? out - 1 - o : o) * kChannels;
    for (int c = 0; c < kChannels; ++c) pixel[c] = byte_of(sums[c]);
  }
}

// The rows between the passes, and one of sums.
struct Room {
  std::vector<std::uint8_t> rows;
  std::vector<std::int32_t> sums;
};

void resize_image(const ResizeBatch& task, int i, Room& room) {
  const std::size_t in_row = size(task.width) * size(task.channels), row = size(task.size) * size(task.channels);
  const std::uint8_t* from = task.images + static_cast<std::size_t>(task.indices[i]) * size(task.height) * in_row;
  const float* box = task.boxes + 4 * i;
  const Weights across(task.width, box[0], box[2], task.size), down(task.height, box[1], box[3], task.size);
  const int first = down.first.front(), last = down.first.back() + down.count.back();
  room.rows.resize(size(last - first) * row);
  room.sums.resize(row);
  const auto run = task.channels == 1 ? resize_row<1> : resize_row<3>;
  for (int y = first; y < last; ++y) {
    run(across, from + size(y) * in_row, task.size, task.mirrored[i] != 0, room.rows.data() + size(y - first) * row);
  }
  std::uint8_t* to = task.out + size(i) * size(task.size) * row;
  for (int o = 0; o < task.size; ++o, to += row) {
    std::int32_t* sums = room.sums.data();
    std::fill_n(sums, row, kHalf);
    for (int k = 0; k < down.count[size(o)]; ++k) {
      const std::uint8_t* line = room.rows.data() + size(down.first[size(o)] + k - first) * row;
      const std::int32_t weight = down.of(o)[k];
      for (std::size_t x = 0; x < row; ++x) sums[x] += line[x] * weight;
    }
    for (std::size_t x = 0; x < row; ++x) to[x] = byte_of(sums[x]);
  }
}

}  // namespace

void resize_batch(const ResizeBatch& task, int threads) {
  const int parts = std::max(1, std::min(threads, task.batch));
  on_threads(parts, [&](int part) {
    const auto cut = [&](int p) { return static_cast<int>(static_cast<std::int64_t>(task.batch) * p / parts); };
    Room room;
    for (int i = cut(part); i < cut(part + 1); ++i) resize_image(task, i, room);
  });
}

}  // namespace ebnet
