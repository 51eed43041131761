#include "base/aligned.h"

#include <cstring>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__EMSCRIPTEN__)
#define EBNET_HEAP_ALONE  // its red zones show who reads past a block; there are no pages to ask for
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EBNET_HEAP_ALONE
#endif
#endif
#ifndef EBNET_HEAP_ALONE
#include <sys/mman.h>
#endif

namespace ebnet {

namespace {

#ifdef EBNET_HEAP_ALONE

std::uint8_t* taken(std::size_t size) {
  void* data = ::operator new(size, std::align_val_t{kAlignment});
  std::memset(data, 0, size);
  return static_cast<std::uint8_t*>(data);
}

void give_back(std::uint8_t* data, std::size_t) { ::operator delete(data, std::align_val_t{kAlignment}); }

#else

// Blocks from this size on are pages of their own. A heap keeps what was freed among blocks that stay: after the trials of
// kernels that was a megabyte, and still some tenths of one when only blocks of 64 kB and more were pages. Pages go back
// at once, and none takes memory before it is written to.
constexpr std::size_t kOwnPages = std::size_t{8} << 10;

std::uint8_t* taken(std::size_t size) {
  if (size < kOwnPages) {
    void* data = ::operator new(size, std::align_val_t{kAlignment});
    std::memset(data, 0, size);
    return static_cast<std::uint8_t*>(data);
  }
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::uint8_t*>(data);
}

void give_back(std::uint8_t* data, std::size_t size) {
  if (size < kOwnPages) {
    ::operator delete(data, std::align_val_t{kAlignment});
  } else {
    ::munmap(data, size);
  }
}

#endif

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size) : size_(size), data_(taken(size)) {}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  AlignedBytes taken(std::move(other));
  std::swap(size_, taken.size_);
  std::swap(data_, taken.data_);
  return *this;
}

AlignedBytes::~AlignedBytes() { give_back(data_, size_); }

}  // namespace ebnet
