#include "bconv/aligned.h"

#include <cstring>
#include <new>

namespace ebnet {

AlignedBytes::AlignedBytes(std::size_t size)
    : size_(size), data_(static_cast<std::uint8_t*>(::operator new(size, std::align_val_t{kAlignment}))) {
  std::memset(data_.get(), 0, size);
}

void AlignedBytes::Free::operator()(std::uint8_t* pointer) const {
  ::operator delete(pointer, std::align_val_t{kAlignment});
}

}  // namespace ebnet
