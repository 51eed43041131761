#include "train/adam.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/step_levels.h"
#include "train/threads.h"

namespace ebnet {
namespace {

AdamNumbers numbers_of(const AdamTensor& tensor, const AdamSettings& settings) {
  const double step = static_cast<double>(*tensor.step), correction = std::sqrt(1 - std::pow(settings.beta2, step));
  const auto number = [](double value) { return static_cast<float>(value); };
  return {number(settings.beta1),
          number(settings.beta2),
          number(1 - settings.beta1),
          number(1 - settings.beta2),
          number(tensor.decay),
          number(correction * tensor.rate / (1 - std::pow(settings.beta1, step))),
          number(correction * settings.eps)};
}

}  // namespace

void adam(const AdamTensor* tensors, int count, const AdamSettings& settings, int threads, DenseLevel level) {
  const auto run = step_kernels(level).adam;
  std::vector<AdamNumbers> numbers;
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    *tensors[i].step += 1.0f;
    numbers.push_back(numbers_of(tensors[i], settings));
    total += tensors[i].count;
  }
  constexpr std::size_t kWorthAThread = 1 << 14;
  const int parts = static_cast<int>(std::clamp<std::size_t>(total / kWorthAThread, 1, static_cast<std::size_t>(threads)));
  on_threads(parts, [&](int part) {
    // Part `part` has the numbers [begin, end) of all tensors in a row.
    const std::size_t begin = total * static_cast<std::size_t>(part) / static_cast<std::size_t>(parts);
    const std::size_t end = total * static_cast<std::size_t>(part + 1) / static_cast<std::size_t>(parts);
    std::size_t passed = 0;
    for (int i = 0; i < count && passed < end; passed += tensors[i++].count) {
      const std::size_t from = std::max(begin, passed), to = std::min(end, passed + tensors[i].count);
      const std::size_t experts = static_cast<std::size_t>(tensors[i].experts);
      if (from < to) run(tensors[i], numbers[static_cast<std::size_t>(i)], (from - passed) / experts, (to - passed) / experts);
    }
  });
}

}  // namespace ebnet
