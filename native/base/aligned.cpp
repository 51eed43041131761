#include "base/aligned.h"

#include <cstring>
#include <new>
#include <utility>

namespace ebnet {

AlignedBytes::AlignedBytes(std::size_t size)
    : size_(size), data_(static_cast<std::uint8_t*>(::operator new(size, std::align_val_t{kAlignment}))) {
  std::memset(data_, 0, size);
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  AlignedBytes taken(std::move(other));
  std::swap(size_, taken.size_);
  std::swap(data_, taken.data_);
  return *this;
}

AlignedBytes::~AlignedBytes() { ::operator delete(data_, std::align_val_t{kAlignment}); }

}  // namespace ebnet
