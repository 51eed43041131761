#include "engine/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "engine/error.h"
#include "engine/fields.h"
#include "engine/json.h"

namespace ebnet {

namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::size_t kMaxRank = 8;

struct TypeName {
  DType dtype;
  const char* name;
  std::uint64_t width;  // bytes
};
constexpr TypeName kTypes[] = {
    {DType::U8, "U8", 1}, {DType::I8, "I8", 1}, {DType::F16, "F16", 2}, {DType::F32, "F32", 4}};

const TypeName& entry_of(DType dtype) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& entry) { return entry.dtype == dtype; });
}

std::uint64_t width_of(DType dtype) { return entry_of(dtype).width; }

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

[[noreturn]] void fail_not_finite(const std::string& name) {
  fail(Error::TensorNotFinite, "tensor " + quoted(name) + " holds NaN or infinity");
}

std::uint64_t whole(const json::Value& value, Error error, const std::string& where) {
  if (value.kind != json::Kind::Number || !value.whole || value.number < 0) {
    fail(error, where + ": expected whole numbers that are not negative");
  }
  return static_cast<std::uint64_t>(value.number);
}

Tensor read_entry(const json::Value& value, const std::string& name, std::uint64_t data_bytes) {
  const std::string where = "tensor " + quoted(name);
  const Fields fields(value, where, {"dtype", "shape", "data_offsets"});
  Tensor tensor;
  const std::string& dtype = fields.text("dtype");
  const auto* const known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& entry) { return entry.name == dtype; });
  if (known == std::end(kTypes)) {
    fail(Error::TensorTypeUnknown, where + ": type " + quoted(dtype) + " is not U8, I8, F16 or F32");
  }
  tensor.dtype = known->dtype;

  const json::Value& offsets = fields.list("data_offsets");
  if (offsets.items.size() != 2) fail(Error::TensorOffsetsInvalid, where + ": expected two data_offsets");
  tensor.begin = whole(offsets.items[0], Error::TensorOffsetsInvalid, where);
  tensor.end = whole(offsets.items[1], Error::TensorOffsetsInvalid, where);
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    fail(Error::TensorOffsetsInvalid, where + ": bytes " + std::to_string(tensor.begin) + " to " +
                                          std::to_string(tensor.end) + " are not within the " +
                                          std::to_string(data_bytes) + " bytes of data");
  }

  const json::Value& shape = fields.list("shape");
  if (shape.items.size() > kMaxRank) fail(Error::TensorSizeMismatch, where + ": too many dimensions");
  // The product is compared step by step with what the offsets allow, so that it cannot overflow.
  const std::uint64_t elements = (tensor.end - tensor.begin) / width_of(tensor.dtype);
  std::uint64_t product = 1;
  for (const json::Value& item : shape.items) {
    const std::uint64_t extent = whole(item, Error::TensorSizeMismatch, where);
    if (extent == 0 || product > elements / extent) {
      fail(Error::TensorSizeMismatch, where + ": the shape does not fit the data_offsets");
    }
    product *= extent;
    tensor.shape.push_back(extent);
  }
  if (product * width_of(tensor.dtype) != tensor.end - tensor.begin) {
    fail(Error::TensorSizeMismatch, where + ": the shape does not fit the data_offsets");
  }
  return tensor;
}

}  // namespace

Safetensors::Safetensors(const Source& source, const Limits& limits) : source_(source) {
  const std::uint64_t size = source.size();
  if (size < kLengthBytes)
    fail(Error::FileTooSmall, "the file has " + std::to_string(size) + " bytes, not even a header");
  if (size > limits.file_bytes) {
    fail(Error::FileTooLarge,
         "the file has " + std::to_string(size) + " bytes, more than " + std::to_string(limits.file_bytes));
  }
  std::uint8_t length_bytes[kLengthBytes];
  source.read(0, length_bytes, kLengthBytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(length_bytes[i]) << (8 * i);
  if (length > std::min(limits.header_bytes, size - kLengthBytes) && size > kLengthBytes) {
    char first = '\0';
    source.read(kLengthBytes, &first, 1);
    if (first != '{') fail(Error::NotAPackedNetwork, "this is not a packed network; `ebnet pack` writes one");
  }
  if (length > limits.header_bytes) {
    fail(Error::HeaderTooLarge,
         "a header of " + std::to_string(length) + " bytes, more than " + std::to_string(limits.header_bytes));
  }
  if (length > size - kLengthBytes) {
    fail(Error::HeaderLengthInvalid,
         "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(size));
  }
  data_begin_ = kLengthBytes + length;

  std::string text(static_cast<std::size_t>(length), '\0');
  source.read(kLengthBytes, text.data(), text.size());
  json::Value header = json::parse(text, "header");
  if (header.kind != json::Kind::Object) fail(Error::FieldTypeWrong, "header: expected a table");

  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (std::size_t i = 0; i < header.items.size(); ++i) {
    json::Value& value = header.items[i];
    const std::string& key = header.keys[i];
    if (key == "__metadata__") {
      if (value.kind != json::Kind::Object) fail(Error::FieldTypeWrong, "__metadata__: expected a table");
      for (std::size_t j = 0; j < value.items.size(); ++j) {
        if (value.items[j].kind != json::Kind::String) {
          fail(Error::FieldTypeWrong, "__metadata__: " + quoted(value.keys[j]) + " is not a string");
        }
        metadata_[value.keys[j]] = std::move(value.items[j].text);
      }
      continue;
    }
    Tensor tensor = read_entry(value, key, size - data_begin_);
    spans.emplace_back(tensor.begin, tensor.end);
    tensors_.emplace(key, std::move(tensor));
  }

  std::sort(spans.begin(), spans.end());
  std::uint64_t reached = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != reached) {
      fail(Error::TensorsOverlapOrGap, "the tensors overlap or leave a hole at byte " + std::to_string(reached));
    }
    reached = end;
  }
  if (reached != size - data_begin_) {
    fail(Error::TensorsOverlapOrGap, "bytes after the last tensor, from " + std::to_string(reached) + " on");
  }
}

const std::string& Safetensors::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) fail(Error::FieldMissing, "__metadata__: field '" + key + "' is missing");
  return found->second;
}

Tensor& Safetensors::take(const std::string& name, const Shape& shape, std::initializer_list<DType> types) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(Error::TensorMissing, "tensor " + quoted(name) + " is missing");
  Tensor& tensor = found->second;
  if (tensor.taken) fail(Error::TensorUsedTwice, "tensor " + quoted(name) + " is used by two ops");
  if (std::find(types.begin(), types.end(), tensor.dtype) == types.end()) {
    std::string expected;
    for (const DType type : types) expected += (expected.empty() ? "" : " or ") + std::string(entry_of(type).name);
    fail(Error::TensorTypeWrong, "tensor " + quoted(name) + ": expected " + expected);
  }
  if (tensor.shape != shape) {
    fail(Error::TensorShapeWrong,
         "tensor " + quoted(name) + " has shape " + shape_text(tensor.shape) + ", expected " + shape_text(shape));
  }
  tensor.taken = true;
  return tensor;
}

std::uint64_t Safetensors::take_bytes(const std::string& name, const Shape& shape) {
  return data_begin_ + take(name, shape, {DType::U8}).begin;
}

bool Safetensors::has_halves(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found != tensors_.end() && found->second.dtype == DType::F16;
}

std::vector<Half> Safetensors::take_halves(const std::string& name, const Shape& shape) {
  const Tensor& tensor = take(name, shape, {DType::F16});
  std::vector<Half> values(static_cast<std::size_t>(tensor.end - tensor.begin) / sizeof(Half));
  source_.read(data_begin_ + tensor.begin, values.data(), values.size() * sizeof(Half));
  if (!std::all_of(values.begin(), values.end(), is_finite)) fail_not_finite(name);
  return values;
}

std::vector<std::int8_t> Safetensors::take_int8(const std::string& name, const Shape& shape, int largest) {
  const Tensor& tensor = take(name, shape, {DType::I8});
  std::vector<std::int8_t> values(static_cast<std::size_t>(tensor.end - tensor.begin));
  source_.read(data_begin_ + tensor.begin, values.data(), values.size());
  for (const int value : values) {
    if (value < -largest || value > largest) {
      fail(Error::TensorOutOfRange, "tensor " + quoted(name) + " holds " + std::to_string(value) + "; int8 weights are " +
                                        std::to_string(-largest) + " to " + std::to_string(largest));
    }
  }
  return values;
}

std::vector<float> Safetensors::take_reals(const std::string& name, const Shape& shape) {
  const Tensor& tensor = take(name, shape, {DType::F16, DType::F32});
  const auto bytes = static_cast<std::size_t>(tensor.end - tensor.begin);
  std::vector<float> values(bytes / width_of(tensor.dtype));
  if (tensor.dtype == DType::F32) {
    source_.read(data_begin_ + tensor.begin, values.data(), bytes);
  } else {
    // A piece at a time: nothing is in memory twice.
    Half piece[2048];
    for (std::size_t first = 0; first < values.size(); first += std::size(piece)) {
      const std::size_t count = std::min(values.size() - first, std::size(piece));
      source_.read(data_begin_ + tensor.begin + first * sizeof(Half), piece, count * sizeof(Half));
      std::transform(piece, piece + count, values.begin() + static_cast<std::ptrdiff_t>(first), half_to_float);
    }
  }
  for (const float value : values) {
    if (!std::isfinite(value)) fail_not_finite(name);
  }
  return values;
}

void Safetensors::check_all_taken() const {
  for (const auto& [name, tensor] : tensors_) {
    if (!tensor.taken) fail(Error::TensorUnused, "tensor " + quoted(name) + " is used by no op");
  }
}

}  // namespace ebnet
