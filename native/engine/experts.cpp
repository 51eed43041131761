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

Experts::Experts(std::shared_ptr<const Source> source, std::uint64_t begin, int count, const Kernel& kernel,
                 const ConvShape& shape, std::string name)
    : source_(std::move(source)),
      begin_(begin),
      kernel_(&kernel),
      shape_(shape),
      name_(std::move(name)),
      digests_(static_cast<std::size_t>(count), kSeed),
      packed_(static_cast<std::size_t>(count)) {
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

void Experts::use(const Kernel& kernel) {
  kernel_ = &kernel;
  for (PackedWeights& packed : packed_) packed = PackedWeights();
}

void Experts::lay_out(int expert, std::uint8_t* staging) {
  PackedWeights& packed = packed_[static_cast<std::size_t>(expert)];
  if (packed.data.data() != nullptr) return;
  source_->read(place_of(expert), staging, staging_bytes());
  if (verified(staging, static_cast<std::size_t>(shape_.out_channels), kSeed) !=
      digests_[static_cast<std::size_t>(expert)]) {
    fail(Error::FileChanged, "tensor " + quoted(name_) + ": the file was changed after it was loaded; load it again");
  }
  packed = kernel_->prepare(staging, shape_);
}

std::uint64_t Experts::place_of(int expert) const {
  return begin_ + static_cast<std::uint64_t>(expert) * shape_.canonical_bytes();
}

std::uint64_t Experts::verified(const std::uint8_t* channels, std::size_t count, std::uint64_t digest) const {
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

}  // namespace ebnet
