// A vector of values of the residual stream in single precision, whatever they are in memory: stream.h, kFloats at a
// time. Comes after one of base/vectors.
#pragma once
#include "base/stream.h"

namespace ebnet::vectors {
namespace {

template <StreamType kType>
struct Stream {
  static constexpr std::size_t kBytes = value_bytes(kType);

  static EBNET_INLINE Floats read(const std::uint8_t* values) {
    if constexpr (kType == StreamType::fp32) return load<Floats>(values);
    if constexpr (kType == StreamType::fp16) return load_halves(values);
    return load_upper_halves(values);
  }

  static EBNET_INLINE void write(std::uint8_t* values, Floats singles) {
    if constexpr (kType == StreamType::fp32) return store(values, singles);
    if constexpr (kType == StreamType::fp16) return store_halves(values, singles);
    const Unsigned bits = reinterpret_cast<Unsigned>(singles);
    store_upper_halves(values, bits + 0x7FFF + (bits >> 16 & 1));
  }
};

// run(Stream of the skip, Stream of the result), as types.
template <typename Run>
inline void with_streams(StreamType skip, StreamType stream, Run run) {
  const auto with_skip = [&](auto from) {
    switch (stream) {
      case StreamType::fp16:
        return run(from, Stream<StreamType::fp16>{});
      case StreamType::bf16:
        return run(from, Stream<StreamType::bf16>{});
      default:
        return run(from, Stream<StreamType::fp32>{});
    }
  };
  switch (skip) {
    case StreamType::fp16:
      return with_skip(Stream<StreamType::fp16>{});
    case StreamType::bf16:
      return with_skip(Stream<StreamType::bf16>{});
    default:
      return with_skip(Stream<StreamType::fp32>{});
  }
}

}  // namespace
}  // namespace ebnet::vectors
