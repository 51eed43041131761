// The kernels that were found to be fastest, by shape: a small text file in the user's cache, $XDG_CACHE_HOME/ebnet or
// ~/.cache/ebnet, one line each:
//   version <tab> CPU <tab> instruction set <tab> the numbers of the shape <tab> kernel
// Lines of other versions, CPUs and sets are kept as they are. Whatever cannot be read is as if it were not there, and
// what cannot be written is measured again next time.
#pragma once
#include <map>
#include <string>

#include "bconv/bconv.h"

namespace ebnet {

class KernelMemory {
 public:
  explicit KernelMemory(Isa isa);

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
