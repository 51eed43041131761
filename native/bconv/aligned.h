// Bytes on a cache-line boundary, owned.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ebnet {

inline constexpr std::size_t kAlignment = 64;

// Zero-filled, 64-byte aligned storage that moves but does not copy.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size);

  std::uint8_t* data() { return data_.get(); }
  const std::uint8_t* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::uint8_t* pointer) const;
  };
  std::size_t size_ = 0;
  std::unique_ptr<std::uint8_t, Free> data_;
};

}  // namespace ebnet
