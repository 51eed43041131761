// The experts of one binary layer. All are verified when the file is read; each is laid out for its kernel when a gate
// first chooses it, so that memory holds the experts that are used and no others.
//
// The file stays open for that. What is laid out is what was verified: bits are read into private memory, verified
// again there and compared with the digest of the first reading.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bconv/bconv.h"
#include "engine/source.h"

namespace ebnet {

class Experts {
 public:
  Experts() = default;
  // `count` experts' canonical bits lie at byte `begin` of the source, which must hold them (a header that was checked
  // says so). `name` is the tensor's. Throws TensorPaddingNotZero.
  Experts(std::shared_ptr<const Source> source, std::uint64_t begin, int count, const Kernel& kernel,
          const ConvShape& shape, std::string name);

  // Another kernel than the one given; those that were laid out are laid out again.
  void use(const Kernel& kernel);
  // Makes an expert ready; its canonical bits pass through `staging`. Throws FileChanged where the file no longer holds
  // what was verified.
  void lay_out(int expert, std::uint8_t* staging);
  // Bytes of staging.
  std::size_t staging_bytes() const { return shape_.canonical_bytes(); }
  // An expert that is ready.
  const PackedWeights& operator[](int expert) const { return packed_[static_cast<std::size_t>(expert)]; }

 private:
  std::uint64_t place_of(int expert) const;
  // Verifies whole channels and carries the digest on over them.
  std::uint64_t verified(const std::uint8_t* channels, std::size_t count, std::uint64_t digest) const;

  std::shared_ptr<const Source> source_;
  std::uint64_t begin_ = 0;
  const Kernel* kernel_ = nullptr;
  ConvShape shape_;
  std::string name_;
  std::vector<std::uint64_t> digests_;
  std::vector<PackedWeights> packed_;  // without data where not laid out
};

}  // namespace ebnet
