// Which kernel runs a layer: the fastest of those that an instruction set has for its shape, on this machine. They are
// timed when a shape is first met, a few runs each, and the choice is remembered in the user's cache. All of them give
// the same numbers, so that a choice that a busy moment has spoilt costs time and nothing else. A kernel is first proved
// for the shape (kernel_proof.h); one that fails is not used.
//
// EBNET_KERNELS: `measured` (the default), `fixed` for the choice that select() makes without measuring, or the name of
// a kernel, which then runs every layer it supports, whatever EBNET_ISA says.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bconv/bconv.h"
#include "engine/kernel_memory.h"

namespace ebnet {

class KernelChoice {
 public:
  // Throws ArgumentInvalid where EBNET_KERNELS names nothing this CPU runs. `kernels` must be static.
  explicit KernelChoice(Isa isa, const Cache& cache = {}, const std::vector<const Kernel*>& kernels = all_kernels());

  const Kernel& choose(const ConvShape& shape);
  // Remembers what was measured, where that can be written.
  void save();

 private:
  Isa isa_;
  Cache cache_;
  const std::vector<const Kernel*>& kernels_;
  std::string wanted_;
  const Kernel* forced_ = nullptr;
  std::unique_ptr<KernelMemory> memory_;  // read when there is something to choose
};

}  // namespace ebnet
