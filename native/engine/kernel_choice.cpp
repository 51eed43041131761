#include "engine/kernel_choice.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "bconv/timing.h"
#include "engine/error.h"

namespace ebnet {

namespace {

constexpr const char* kMeasured = "measured";
constexpr const char* kFixed = "fixed";
constexpr double kMostMacs = 32e6;  // of one run: about a tenth of a millisecond
constexpr int kRuns = 4;            // of each kernel, the first of which does not count
constexpr double kWorthIt = 0.97;   // of the fixed choice's time: less is noise

// As many of the layer's rows as are quickly run, all of them where possible.
ConvShape shortened(ConvShape shape) {
  const double share = kMostMacs / KernelTiming::macs_of(shape);
  if (share >= 1) return shape;
  const int rows = std::max(1, static_cast<int>(shape.out_h() * share));
  const int reach = (rows - 1) * shape.stride_h + shape.dilation_h * (shape.kernel_h - 1) + 1;
  shape.in_h = std::max(1, reach - 2 * shape.pad_h);
  return shape;
}

// The fastest; the last is the fixed choice. They take turns, so that a busy moment slows all of them.
const Kernel& fastest(const std::vector<const Kernel*>& kernels, const ConvShape& shape) {
  const ConvShape part = shortened(shape);
  std::vector<KernelTiming> timings;
  timings.reserve(kernels.size());
  for (const Kernel* kernel : kernels) timings.emplace_back(*kernel, part);
  std::vector<double> best(kernels.size(), std::numeric_limits<double>::infinity());
  for (int run = 0; run < kRuns; ++run) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const double seconds = timings[i].seconds(true);
      if (run > 0) best[i] = std::min(best[i], seconds);
    }
  }
  const std::size_t first = static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
  return best[first] < kWorthIt * best.back() ? *kernels[first] : *kernels.back();
}

const Kernel* named(const std::vector<const Kernel*>& kernels, const std::string& name) {
  for (const Kernel* kernel : kernels) {
    if (name == kernel->name) return kernel;
  }
  return nullptr;
}

}  // namespace

KernelChoice::KernelChoice(Isa isa) : isa_(isa), wanted_(kMeasured) {
  const char* wanted = std::getenv("EBNET_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return;
  wanted_ = wanted;
  if (wanted_ == kMeasured || wanted_ == kFixed) return;
  std::string names;
  for (const Kernel* kernel : all_kernels()) {
    if (!cpu_supports(kernel->isa)) continue;
    if (wanted_ == kernel->name) {
      forced_ = kernel;
      return;
    }
    names += std::string(", ") + kernel->name;
  }
  fail(Error::ArgumentInvalid, "EBNET_KERNELS=" + quoted(wanted_) + ": expected " + kMeasured + ", " + kFixed +
                                   " or a kernel of this CPU" + names);
}

const Kernel& KernelChoice::choose(const ConvShape& shape) {
  if (forced_ != nullptr && forced_->supports(shape)) return *forced_;
  const std::vector<const Kernel*> kernels = kernels_for(shape, isa_);
  if (kernels.size() == 1 || wanted_ != kMeasured) return *kernels.back();
  if (memory_ == nullptr) memory_ = std::make_unique<KernelMemory>(isa_);
  if (const Kernel* kernel = named(kernels, memory_->recall(shape))) return *kernel;
  const Kernel& kernel = fastest(kernels, shape);
  memory_->remember(shape, kernel.name);
  return kernel;
}

void KernelChoice::save() {
  if (memory_ != nullptr) memory_->save();
}

}  // namespace ebnet
