#include "engine/kernel_choice.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "bconv/timing.h"
#include "engine/error.h"
#include "engine/kernel_proof.h"

namespace ebnet {

namespace {

constexpr const char* kMeasured = "measured";
constexpr const char* kFixed = "fixed";
constexpr double kMostMacs = 32e6;  // of one run: about a tenth of a millisecond
constexpr int kRuns = 4;            // of each kernel, the first of which does not count
constexpr double kWorthIt = 0.97;   // of the fixed choice's time: less is noise

// The fastest; the last is the fixed choice. They take turns, so that a busy moment slows all of them.
const Kernel& fastest(const std::vector<const Kernel*>& kernels, const ConvShape& shape) {
  const ConvShape part = shortened(shape, kMostMacs);
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

KernelChoice::KernelChoice(Isa isa, const Cache& cache, const std::vector<const Kernel*>& kernels)
    : isa_(isa), cache_(cache), kernels_(kernels), wanted_(kMeasured) {
  const char* wanted = std::getenv("EBNET_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return;
  wanted_ = wanted;
  if (wanted_ == kMeasured || wanted_ == kFixed) return;
  std::string names;
  for (const Kernel* kernel : kernels_) {
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
  if (forced_ != nullptr && forced_->supports(shape) && proven(*forced_, shape)) return *forced_;
  const bool remembers = wanted_ == kMeasured;
  if (remembers && memory_ == nullptr) memory_ = std::make_unique<KernelMemory>(isa_, cache_);
  std::vector<const Kernel*> kernels = kernels_for(shape, isa_, kernels_);
  if (remembers) {
    // What is remembered was proved when it was.
    if (const Kernel* kernel = named(kernels, memory_->recall(shape))) return *kernel;
  }
  // Where no kernel of the set is right, those of the sets below; the portable one needs no proof.
  for (int isa = static_cast<int>(isa_); isa >= static_cast<int>(Isa::portable); --isa) {
    kernels = kernels_for(shape, static_cast<Isa>(isa), kernels_);
    const auto wrong = [&](const Kernel* kernel) { return !proven(*kernel, shape); };
    kernels.erase(std::remove_if(kernels.begin(), kernels.end(), wrong), kernels.end());
    if (!kernels.empty()) break;
  }
  if (kernels.empty()) kernels = kernels_for(shape, isa_, kernels_);  // the reference, by request
  const Kernel& kernel = remembers && kernels.size() > 1 ? fastest(kernels, shape) : *kernels.back();
  if (remembers) memory_->remember(shape, kernel.name);
  return kernel;
}

void KernelChoice::save() {
  if (memory_ != nullptr) memory_->save();
}

}  // namespace ebnet
