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

  // The first `lanes` values alone, any number of them: kWhole says that they are a vector or more.
  template <bool kWhole>
  static EBNET_INLINE Floats read_first(const std::uint8_t* values, int lanes) {
    if constexpr (kWhole) return read(values);
    if constexpr (kType == StreamType::fp32) return load_first<false>(values, lanes);
    std::uint8_t some[kFloats * kBytes] = {};
    copy_first(some, values, lanes);
    return read(some);
  }

  template <bool kWhole>
  static EBNET_INLINE void write_first(std::uint8_t* values, Floats singles, int lanes) {
    if constexpr (kWhole) return write(values, singles);
    if constexpr (kType == StreamType::fp32) return store_first<false>(values, singles, lanes);
    std::uint8_t some[kFloats * kBytes];
    write(some, singles);
    copy_first(values, some, lanes);
  }

  static EBNET_INLINE void copy_first(std::uint8_t* to, const std::uint8_t* from, int lanes) {
    for (int lane = 0; lane < kFloats && lane < lanes; ++lane) std::memcpy(to + lane * kBytes, from + lane * kBytes, kBytes);
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
