// The container: 8 bytes of header length, a JSON header, then the tensors' bytes without holes or overlap.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/half.h"
#include "engine/limits.h"
#include "engine/source.h"

namespace ebnet {

enum class DType : std::uint8_t { U8, I8, F16, F32 };

struct Tensor {
  DType dtype = DType::U8;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes, from the end of the header
  bool taken = false;
};

using Shape = std::vector<std::uint64_t>;

// Reads and verifies the header when made; tensors are read, each exactly once, when they are taken.
class Safetensors {
 public:
  Safetensors(const Source& source, const Limits& limits);

  const std::string& metadata(const std::string& key) const;
  // Reals of either width as floats; every one finite.
  std::vector<float> take_reals(const std::string& name, const Shape& shape);
  // Whether a tensor holds reals of half precision.
  bool has_halves(const std::string& name) const;
  // Reals of half precision as they are; every one finite.
  std::vector<Half> take_halves(const std::string& name, const Shape& shape);
  // Whole numbers of a byte, each at most `largest` away from 0.
  std::vector<std::int8_t> take_int8(const std::string& name, const Shape& shape, int largest);
  // Where in the source a tensor of bytes begins.
  std::uint64_t take_bytes(const std::string& name, const Shape& shape);
  // Throws where a tensor was never taken: nothing may hide in a file.
  void check_all_taken() const;

 private:
  Tensor& take(const std::string& name, const Shape& shape, std::initializer_list<DType> types);

  const Source& source_;
  std::uint64_t data_begin_ = 0;
  std::unordered_map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace ebnet
