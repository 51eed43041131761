// Cutting, threads and the choice of level; the arithmetic is in sample_gradients.h and convolution.h.
#include "train/expert_conv.h"

#include <algorithm>
#include <vector>

#include "train/levels.h"
#include "train/threads.h"

namespace ebnet {
namespace {

const TrainKernels& kernels(DenseLevel level) {
#ifdef EBNET_X86_64
  if (level == DenseLevel::avx512) return kTrainAvx512;
  if (level == DenseLevel::avx2) return kTrainAvx2;
#endif
  (void)level;
  return kTrainPortable;
}

constexpr int kFirstCache = 6400;    // floats of transposed input that are worked on at a time
constexpr int kSecondCache = 65536;  // floats of directions and total that stay while an expert's samples pass by
constexpr int kPositions = 128;      // of a band: enough that using a tile costs little beside making it

std::size_t size(int value) { return static_cast<std::size_t>(value); }

int ceil_div(int a, int b) { return (a + b - 1) / b; }

int round_up(int value, int step) { return ceil_div(value, step) * step; }

// `whole` in parts of at most `part`, as even as whole steps allow.
int even_part(int whole, int part, int step) {
  return std::min(whole, round_up(ceil_div(whole, ceil_div(whole, part)), step));
}

WeightBlocks blocks_of(const ConvShape& s, int experts, int threads) {
  WeightBlocks blocks;
  blocks.map_rows = even_part(s.out_h(), std::max(1, kPositions / s.out_w()), 1);
  const int lines = std::min(s.in_h, (blocks.map_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1);
  const int channels = kFirstCache / std::max(1, lines * (s.in_w + 2 * s.pad_w)) / 16 * 16;
  blocks.channels = std::min(s.in_per_group(), std::clamp(channels, 16, 64));
  blocks.channel_blocks = ceil_div(s.in_per_group(), blocks.channels);
  const int rows = kSecondCache / ((experts + 1) * s.taps() * blocks.channels);
  blocks.rows = even_part(s.out_per_group(), std::max(rows, 12), 6);
  // Something to do for every thread.
  while (threads > 1 && blocks.rows > 6 &&
         s.groups * ceil_div(s.out_per_group(), blocks.rows) * blocks.channel_blocks < 2 * threads) {
    blocks.rows = blocks.rows / 12 * 6 + (blocks.rows < 12 ? 6 : 0);
  }
  blocks.row_blocks = ceil_div(s.out_per_group(), blocks.rows);
  blocks.count = s.groups * blocks.row_blocks * blocks.channel_blocks;
  return blocks;
}

std::size_t scratch_floats(const ConvShape& s, const WeightBlocks& blocks, int experts, int lanes) {
  const bool joined = s.dilation_w == 1;
  const int run = round_up(joined ? s.kernel_w * blocks.channels : blocks.channels, lanes);
  const std::size_t count = size(blocks.rows) * size(joined ? s.kernel_h : s.taps()) * size(run);
  const int lines = std::min(s.in_h, (blocks.map_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1);
  const int columns = (s.out_w() - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
  return size(2 * experts + 2) * count + size(experts) * size(lanes) +
         size(lines) * size(columns) * size(blocks.channels) + size(2 * lanes);
}

// The batch by expert, as the kernels take it.
class Order {
 public:
  Order(const std::int64_t* chosen, int batch, int experts) : order_(size(batch)), begin_(size(experts) + 2) {
    for (int b = 0; b < batch; ++b) ++begin_[static_cast<std::size_t>(chosen[b]) + 2];
    for (std::size_t e = 2; e < begin_.size(); ++e) begin_[e] += begin_[e - 1];
    for (int b = 0; b < batch; ++b) order_[size(begin_[static_cast<std::size_t>(chosen[b]) + 1]++)] = b;
  }
  SamplesByExpert samples() const { return {order_.data(), begin_.data()}; }

 private:
  std::vector<int> order_, begin_;
};

// A whole group is one block: narrow layers.
WeightBlocks whole_groups(const ConvShape& s) {
  WeightBlocks blocks;
  blocks.rows = s.out_per_group();
  blocks.channels = s.in_per_group();
  blocks.map_rows = even_part(s.out_h(), std::max(1, kPositions / s.out_w()), 1);
  blocks.count = s.groups;
  return blocks;
}

using Convolve = void (*)(const ExpertConv& task, const WeightBlocks& blocks, const SamplesByExpert& samples, int first,
                          int last, float* scratch);

void convolve(const ExpertConv& task, int threads, int lanes, Convolve run) {
  const ConvShape& s = task.shape;
  const WeightBlocks blocks = whole_groups(s);
  const Order order(task.chosen, task.batch, task.experts);
  const int parts = std::max(1, std::min(threads, task.batch));
  // Places, weights of one group in both orders, a panel of outputs and the whole transposed map: enough for either direction.
  const int lines = (s.out_h() - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  const int columns = (s.out_w() - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
  const std::size_t positions = size(s.out_h()) * size(s.out_w());
  const std::size_t panels = size(s.taps()) * size(s.in_per_group()) * size(round_up(s.out_per_group(), 2 * lanes));
  const std::size_t rows = size(s.out_per_group()) * size(s.taps()) * size(round_up(s.in_per_group(), lanes));
  const std::size_t floats = positions * size(2 * lanes + 1) + std::max(panels, rows) + rows +
                             size(s.in_per_group()) * (size(lines) * size(columns) + size(s.taps())) + size(2 * lanes);
  on_threads(parts, [&](int part) {
    const std::int64_t batch = task.batch;
    run(task, blocks, order.samples(), static_cast<int>(batch * part / parts),
        static_cast<int>(batch * (part + 1) / parts), scratch(floats));
  });
}

}  // namespace

void expert_forward(const ExpertConv& task, int threads, DenseLevel level) {
  convolve(task, threads, kernels(level).lanes, kernels(level).forward);
}

void expert_input_gradient(const ExpertConv& task, int threads, DenseLevel level) {
  convolve(task, threads, kernels(level).lanes, kernels(level).input_gradient);
}

void sample_gradients(const SampleGradients& task, int threads, DenseLevel level) {
  const TrainKernels& kernel = kernels(level);
  const WeightBlocks blocks = blocks_of(task.shape, task.experts, threads);
  const Order order(task.chosen, task.batch, task.experts);
  // Block k goes to part k mod `parts`, whichever thread takes that part: sums are in an order that no race changes.
  const int parts = std::min(threads, blocks.count);
  const std::size_t scores = size(task.batch) * size(task.experts);
  std::vector<float> partial(scores * size(parts - 1));
  const std::size_t floats = scratch_floats(task.shape, blocks, task.experts, kernel.lanes);
  std::fill_n(task.dgate, scores, 0.0f);
  on_threads(parts, [&](int part) {
    float* to = part == 0 ? task.dgate : partial.data() + size(part - 1) * scores;
    for (int block = part; block < blocks.count; block += parts) {
      kernel.sample_gradients(task, blocks, order.samples(), block, scratch(floats), to);
    }
  });
  for (std::size_t i = 0; i < partial.size(); ++i) task.dgate[i % scores] += partial[i];
}

}  // namespace ebnet
