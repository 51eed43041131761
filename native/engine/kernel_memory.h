// The kernels that were found to be right and fastest, by shape: a small text file in the user's cache,
// $XDG_CACHE_HOME/ebnet or ~/.cache/ebnet, one line each:
//   version and build <tab> CPU <tab> instruction set <tab> the numbers of the shape <tab> kernel
// Lines of other versions, CPUs and sets are kept as they are. Whatever cannot be read is as if it were not there, and
// what cannot be written is measured again next time.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "bconv/bconv.h"

namespace ebnet {

// The directory to use instead of the user's cache; "" for none, so that nothing is remembered.
using Cache = std::optional<std::string>;

// The numbers of a shape, each followed by a space.
std::string shape_text(const ConvShape& shape);

class KernelMemory {
 public:
  explicit KernelMemory(Isa isa, const Cache& cache = {});

  // A kernel's name, or "".
  std::string recall(const ConvShape& shape) const;
  void remember(const ConvShape& shape, const std::string& kernel);
  // Writes what is new, beside what others have written meanwhile.
  void save();

 private:
  std::string key_of(const ConvShape& shape) const;

  std::string file_;    // "" where there is no place for it
  std::string prefix_;  // of this version, CPU and instruction set
  std::map<std::string, std::string> kernels_, fresh_;  // by key
};

}  // namespace ebnet
