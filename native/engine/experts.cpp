#include "engine/experts.h"

#include <algorithm>
#include <cstring>

#include "engine/error.h"

namespace ebnet {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;  // read at once while verifying
constexpr std::uint64_t kSeed = 0x9E3779B97F4A7C15u;

// Tells accidents and edits apart from the file that was read. It is no seal: nothing's safety depends on it.
std::uint64_t digest_of(const std::uint8_t* bytes, std::size_t count, std::uint64_t digest) {
  for (std::size_t i = 0; i < count; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min(count - i, sizeof word));
    digest = (digest ^ word) * 0xFF51AFD7ED558CCDu;
    digest ^= digest >> 32;
  }
  return digest;
}

}  // namespace

ExpertBits::ExpertBits(std::shared_ptr<const Source> source, std::uint64_t begin, int count, const ConvShape& shape,
                       std::string name)
    : source_(std::move(source)),
      begin_(begin),
      shape_(shape),
      name_(std::move(name)),
      digests_(static_cast<std::size_t>(count), kSeed) {
  const std::size_t row = shape_.canonical_bytes_per_channel();
  const auto channels = static_cast<std::size_t>(shape_.out_channels);
  const std::size_t at_once = std::clamp<std::size_t>(kPieceBytes / row, 1, channels);
  std::vector<std::uint8_t> piece(at_once * row);
  for (int expert = 0; expert < count; ++expert) {
    std::uint64_t& digest = digests_[static_cast<std::size_t>(expert)];
    for (std::size_t first = 0; first < channels; first += at_once) {
      const std::size_t some = std::min(at_once, channels - first);
      source_->read(place_of(expert) + first * row, piece.data(), some * row);
      digest = verified(piece.data(), some, digest);
    }
  }
}

void ExpertBits::read(int expert, std::uint8_t* canonical) const {
  source_->read(place_of(expert), canonical, shape_.canonical_bytes());
  if (verified(canonical, static_cast<std::size_t>(shape_.out_channels), kSeed) !=
      digests_[static_cast<std::size_t>(expert)]) {
    fail(Error::FileChanged, "tensor " + quoted(name_) + ": the file was changed after it was loaded; load it again");
  }
}

std::uint64_t ExpertBits::place_of(int expert) const {
  return begin_ + static_cast<std::uint64_t>(expert) * shape_.canonical_bytes();
}

std::uint64_t ExpertBits::verified(const std::uint8_t* channels, std::size_t count, std::uint64_t digest) const {
  // The last byte of a channel may have bits past its weights; kernels rely on them being 0.
  const int tail = shape_.taps() * shape_.in_per_group() % 8;
  const std::size_t row = shape_.canonical_bytes_per_channel();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* channel = channels + i * row;
    if (tail != 0 && channel[row - 1] >> tail != 0) {
      fail(Error::TensorPaddingNotZero, "tensor " + quoted(name_) + ": bits past the last weight are set");
    }
    digest = digest_of(channel, row, digest);
  }
  return digest;
}

ExpertLayout::ExpertLayout(const ExpertBits& bits, const Kernel& kernel)
    : bits_(bits),
      kernel_(kernel),
      packed_(static_cast<std::size_t>(bits.count())),
      ready_(std::make_unique<std::atomic<bool>[]>(packed_.size())) {}

const PackedWeights& ExpertLayout::expert(int index, std::uint8_t* staging) {
  const auto i = static_cast<std::size_t>(index);
  if (!ready_[i].load(std::memory_order_acquire)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ready_[i].load(std::memory_order_relaxed)) {
      bits_.read(index, staging);
      packed_[i] = kernel_.prepare(staging, bits_.shape());
      ready_[i].store(true, std::memory_order_release);
    }
  }
  return packed_[i];
}

MemoryRange ExpertLayout::range(int index) const {
  const auto i = static_cast<std::size_t>(index);
  if (!ready_[i].load(std::memory_order_acquire)) return {nullptr, 0};
  return {packed_[i].data.data(), packed_[i].data.size()};
}

ExpertLayout& Experts::layout(const Kernel& kernel) const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->layouts.try_emplace(&kernel, shared_->bits, kernel).first->second;
}

}  // namespace ebnet
