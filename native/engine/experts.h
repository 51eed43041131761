// The experts of one binary layer. All are verified when the file is read; each is laid out for a kernel when a gate
// first chooses it, so that memory holds the experts that are used and no others, each once for every kernel that runs
// it, whoever asks.
//
// The file stays open for that. What is laid out is what was verified: bits are read into private memory, verified
// again there and compared with the digest of the first reading.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bconv/bconv.h"
#include "engine/source.h"

namespace ebnet {

// The verified bits in the file.
class ExpertBits {
 public:
  // `count` experts' canonical bits lie at byte `begin` of the source, which must hold them (a header that was checked
  // says so). `name` is the tensor's. Throws TensorPaddingNotZero.
  ExpertBits(std::shared_ptr<const Source> source, std::uint64_t begin, int count, const ConvShape& shape,
             std::string name);

  int count() const { return static_cast<int>(digests_.size()); }
  const ConvShape& shape() const { return shape_; }
  // Reads one expert into shape().canonical_bytes() bytes. Throws FileChanged where the file no longer holds what was
  // verified.
  void read(int expert, std::uint8_t* canonical) const;

 private:
  std::uint64_t place_of(int expert) const;
  // Verifies whole channels and carries the digest on over them.
  std::uint64_t verified(const std::uint8_t* channels, std::size_t count, std::uint64_t digest) const;

  std::shared_ptr<const Source> source_;
  std::uint64_t begin_;
  ConvShape shape_;
  std::string name_;
  std::vector<std::uint64_t> digests_;
};

// The experts as one kernel wants them. Any number of threads may ask at once.
class ExpertLayout {
 public:
  ExpertLayout(const ExpertBits& bits, const Kernel& kernel);

  // An expert, laid out now where it was not yet; its canonical bits then pass through `staging`.
  const PackedWeights& expert(int index, std::uint8_t* staging);
  // Where an expert lies; one that is not laid out lies nowhere.
  MemoryRange range(int index) const;

 private:
  const ExpertBits& bits_;
  const Kernel& kernel_;
  std::mutex mutex_;                           // of those who lay out
  std::vector<PackedWeights> packed_;
  std::unique_ptr<std::atomic<bool>[]> ready_;  // by expert: whether `packed_` may be read
};

class Experts {
 public:
  Experts() = default;
  explicit Experts(ExpertBits bits) : shared_(std::make_unique<Shared>(std::move(bits))) {}

  // Lives as long as the experts, and is empty when it is first asked for.
  ExpertLayout& layout(const Kernel& kernel) const;
  std::size_t staging_bytes() const { return shared_->bits.shape().canonical_bytes(); }

 private:
  struct Shared {
    explicit Shared(ExpertBits verified) : bits(std::move(verified)) {}
    const ExpertBits bits;
    std::mutex mutex;
    std::map<const Kernel*, ExpertLayout> layouts;
  };
  std::unique_ptr<Shared> shared_;
};

}  // namespace ebnet
