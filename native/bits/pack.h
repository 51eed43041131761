// Signs to bits: the one place that says how a vector of reals becomes words.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebnet {

// Bit j of word i is 1 where values[64 i + j] >= 0, so sign(0) = +1; bits past `count` are 0.
// `words` holds ceil(count / 64) entries.
void pack_signs(const float* values, std::size_t count, std::uint64_t* words);

}  // namespace ebnet
