#include "engine/kernel_proof.h"

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "bconv/proof.h"
#include "engine/kernel_memory.h"

namespace ebnet {

namespace {

struct Proofs {
  std::mutex mutex;
  std::map<std::pair<const Kernel*, std::string>, bool> known;
  std::set<const Kernel*> said;
  std::vector<std::string> notices;
};

// Never destroyed: a thread may ask while the process ends.
Proofs& proofs() {
  static auto* all = new Proofs;
  return *all;
}

}  // namespace

bool proven(const Kernel& kernel, const ConvShape& shape) {
  if (kernel.isa <= Isa::portable) return true;
  Proofs& all = proofs();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto [found, fresh] = all.known.try_emplace({&kernel, shape_text(shape)}, false);
  if (fresh) {
    found->second = agrees_with_portable(kernel, shape);
    if (!found->second && all.said.insert(&kernel).second) {
      all.notices.push_back("the kernel " + std::string(kernel.name) + " is wrong on this CPU (" + cpu_name() +
                            ") for the layer " + found->first.second +
                            "and is not used where it is; results are right, please report it");
    }
  }
  return found->second;
}

std::vector<std::string> take_kernel_notices() {
  Proofs& all = proofs();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return std::exchange(all.notices, {});
}

}  // namespace ebnet
