// Bytes on a cache-line boundary, owned.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/inline.h"

namespace ebnet {

inline constexpr std::size_t kAlignment = 64;

// Zero-filled, 64-byte aligned storage that moves but does not copy.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size);
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  ~AlignedBytes();

  EBNET_INLINE std::uint8_t* data() { return data_; }
  EBNET_INLINE const std::uint8_t* data() const { return data_; }
  EBNET_INLINE std::size_t size() const { return size_; }

  template <typename T>
  EBNET_INLINE T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  EBNET_INLINE const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::size_t size_ = 0;
  std::uint8_t* data_ = nullptr;  // not a unique_ptr, whose functions are inline
};

}  // namespace ebnet
