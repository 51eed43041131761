// Cutting, threads and the choice of level; the arithmetic is in sample_gradients.h.
#include "train/expert_conv.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "bconv/aligned.h"
#include "engine/thread_pool.h"
#include "train/levels.h"

namespace ebnet {
namespace {

const TrainKernels& kernels(DenseLevel level) {
#ifdef EBNET_DENSE_X86_64
  if (level == DenseLevel::avx512) return kTrainAvx512;
  if (level == DenseLevel::avx2) return kTrainAvx2;
#endif
  (void)level;
  return kTrainPortable;
}

constexpr int kFirstCache = 4096;    // floats of transposed input that are worked on at a time
constexpr int kSecondCache = 49152;  // floats of directions and total that stay while an expert's samples pass by
constexpr int kPositions = 256;      // of a band: enough that using a tile costs little beside making it

int ceil_div(int a, int b) { return (a + b - 1) / b; }

int round_up(int value, int step) { return ceil_div(value, step) * step; }

// `whole` in parts of at most `part`, as even as whole steps allow.
int even_part(int whole, int part, int step) { return std::min(whole, round_up(ceil_div(whole, ceil_div(whole, part)), step)); }

WeightBlocks blocks_of(const ConvShape& s, int experts, int threads) {
  WeightBlocks blocks;
  blocks.map_rows = even_part(s.out_h(), std::max(1, kPositions / s.out_w()), 1);
  const int lines = std::min(s.in_h, (blocks.map_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1);
  const int channels = kFirstCache / std::max(1, lines * (s.in_w + 2 * s.pad_w)) / 16 * 16;
  blocks.channels = std::min(s.in_per_group(), std::clamp(channels, 16, 64));
  blocks.channel_blocks = ceil_div(s.in_per_group(), blocks.channels);
  const int rows = kSecondCache / ((experts + 1) * s.taps() * blocks.channels);
  blocks.rows = even_part(s.out_per_group(), std::max(rows, 12), 6);
  while (blocks.rows > 6 && ceil_div(s.out_per_group(), blocks.rows) * blocks.channel_blocks * s.groups < 2 * threads &&
         threads > 1) {
    blocks.rows = round_up(blocks.rows / 2, 6);
    if (blocks.rows == 6) break;
  }
  blocks.row_blocks = ceil_div(s.out_per_group(), blocks.rows);
  blocks.count = s.groups * blocks.row_blocks * blocks.channel_blocks;
  return blocks;
}

std::size_t scratch_floats(const ConvShape& s, const WeightBlocks& blocks, int experts, int lanes) {
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  const bool joined = s.dilation_w == 1;
  const int run = round_up(joined ? s.kernel_w * blocks.channels : blocks.channels, lanes);
  const std::size_t count = size(blocks.rows) * size(joined ? s.kernel_h : s.taps()) * size(run);
  const int lines = std::min(s.in_h, (blocks.map_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1);
  const int columns = (s.out_w() - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
  return size(2 * experts + 2) * count + size(experts) * size(lanes) +
         size(lines) * size(columns) * size(blocks.channels) + size(2 * lanes);
}

// A thread's scratch outlives the call: fresh pages each time would cost narrow layers a good part of it.
float* scratch(std::size_t floats) {
  thread_local AlignedBytes bytes;
  if (bytes.size() < floats * sizeof(float)) bytes = AlignedBytes(floats * sizeof(float));
  return bytes.as<float>();
}

// body(thread) on as many threads of a pool that lives as long as the process. A second caller at the same time waits.
template <typename Body>
void on_threads(int threads, Body&& body) {
  static std::mutex mutex;
  static std::unique_ptr<ThreadPool> pool;
  if (threads == 1) return body(0);
  const std::lock_guard<std::mutex> lock(mutex);
  if (pool == nullptr || pool->threads() != threads) pool = std::make_unique<ThreadPool>(threads);
  pool->loop(threads, [&](int part, int) { body(part); });
}

}  // namespace

void sample_gradients(const SampleGradients& task, int threads, DenseLevel level) {
  const TrainKernels& kernel = kernels(level);
  const WeightBlocks blocks = blocks_of(task.shape, task.experts, threads);
  std::vector<int> order(static_cast<std::size_t>(task.batch)), begin(static_cast<std::size_t>(task.experts) + 2);
  for (int b = 0; b < task.batch; ++b) ++begin[static_cast<std::size_t>(task.chosen[b]) + 2];
  for (std::size_t e = 2; e < begin.size(); ++e) begin[e] += begin[e - 1];
  for (int b = 0; b < task.batch; ++b) order[static_cast<std::size_t>(begin[static_cast<std::size_t>(task.chosen[b]) + 1]++)] = b;

  // Block k goes to part k mod `parts`, whichever thread takes that part: sums are in an order that no race changes.
  const int parts = std::min(threads, blocks.count);
  const std::size_t scores = static_cast<std::size_t>(task.batch) * static_cast<std::size_t>(task.experts);
  std::vector<float> partial(scores * static_cast<std::size_t>(parts - 1));
  const std::size_t floats = scratch_floats(task.shape, blocks, task.experts, kernel.lanes);
  std::fill_n(task.dgate, scores, 0.0f);
  on_threads(parts, [&](int part) {
    float* to = part == 0 ? task.dgate : partial.data() + static_cast<std::size_t>(part - 1) * scores;
    for (int block = part; block < blocks.count; block += parts) {
      kernel.sample_gradients(task, blocks, {order.data(), begin.data()}, block, scratch(floats), to);
    }
  });
  for (std::size_t i = 0; i < partial.size(); ++i) task.dgate[i % scores] += partial[i];
}

}  // namespace ebnet
