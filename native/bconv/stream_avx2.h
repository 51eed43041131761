// Eight values of the residual stream in a vector of singles, whatever they are in memory: stream.h, eight at a time.
#pragma once
#include <immintrin.h>

#include "base/stream.h"

namespace ebnet::avx2 {
namespace {

template <StreamType kType>
struct Stream {
  static constexpr std::size_t kBytes = value_bytes(kType);

  static inline __m256 load(const std::uint8_t* values) {
    if constexpr (kType == StreamType::fp32) return _mm256_loadu_ps(reinterpret_cast<const float*>(values));
    const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    if constexpr (kType == StreamType::fp16) return _mm256_cvtph_ps(narrow);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
  }

  static inline void store(std::uint8_t* values, __m256 singles) {
    if constexpr (kType == StreamType::fp32) return _mm256_storeu_ps(reinterpret_cast<float*>(values), singles);
    auto* const to = reinterpret_cast<__m128i*>(values);
    if constexpr (kType == StreamType::fp16) {
      return _mm_storeu_si128(to, _mm256_cvtps_ph(singles, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    const __m256i words = _mm256_castps_si256(singles);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(words, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(words, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i upper = _mm256_srli_epi32(rounded, 16);
    _mm_storeu_si128(to, _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
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
}  // namespace ebnet::avx2
