// How the residual stream is kept in memory. Arithmetic is in single precision whatever it is: a narrow value is widened
// where it is read, and rounded to the nearest where it is stored.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/bfloat16.h"
#include "base/half.h"

namespace ebnet {

enum class StreamType { fp32, fp16, bf16 };

constexpr const char* stream_type_name(StreamType type) {
  return type == StreamType::fp32 ? "fp32" : type == StreamType::fp16 ? "fp16" : "bf16";
}

namespace {

constexpr std::size_t value_bytes(StreamType type) { return type == StreamType::fp32 ? sizeof(float) : sizeof(Half); }

inline float load_value(const void* values, std::size_t index, StreamType type) {
  switch (type) {
    case StreamType::fp16:
      return half_to_float(static_cast<const Half*>(values)[index]);
    case StreamType::bf16:
      return bfloat16_to_float(static_cast<const Bfloat16*>(values)[index]);
    default:
      return static_cast<const float*>(values)[index];
  }
}

inline void store_value(void* values, std::size_t index, float value, StreamType type) {
  switch (type) {
    case StreamType::fp16:
      static_cast<Half*>(values)[index] = float_to_half(value);
      return;
    case StreamType::bf16:
      static_cast<Bfloat16*>(values)[index] = float_to_bfloat16(value);
      return;
    default:
      static_cast<float*>(values)[index] = value;
  }
}

}  // namespace
}  // namespace ebnet
