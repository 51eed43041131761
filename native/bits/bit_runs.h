// Where the bits of up to kMost neighbouring channels go in a pixel of the bit plane: groups of it and its words cut them
// into runs, each of which lies within one word. Found once for many pixels, divisions are slow.
#pragma once
#include <cstdint>

#include "base/inline.h"
#include "bits/planes.h"

namespace ebnet {
namespace {

template <int kMost>
struct BitRuns {
  static_assert(kMost <= 16, "masks of 16 bits");
  struct Run {
    std::uint32_t word;
    std::uint8_t first, bit;  // of the channels, of the word
    std::uint16_t mask;       // of the run's length
  };

  BitRuns() = default;
  EBNET_INLINE BitRuns(int channel, int channels, int per_group) {
    for (int first = 0, length = 0; first < channels; first += length) {
      const BitPlace place = bit_place(channel + first, per_group);
      const int in_word = 64 - static_cast<int>(place.bit);
      const int in_group = per_group - (channel + first) % per_group;
      length = in_word < in_group ? in_word : in_group;
      length = length < channels - first ? length : channels - first;
      runs[count++] = {static_cast<std::uint32_t>(place.word), static_cast<std::uint8_t>(first),
                       static_cast<std::uint8_t>(place.bit), static_cast<std::uint16_t>((1u << length) - 1)};
    }
  }

  // Whether the bits are bytes of their own.
  EBNET_INLINE bool are_bytes(int channels) const {
    return count == 0 || (count == 1 && runs[0].bit % 8 == 0 && channels % 8 == 0);
  }
  // Those bytes' place in a pixel.
  EBNET_INLINE std::size_t first_byte() const {
    return count == 0 ? 0 : runs[0].word * sizeof(std::uint64_t) + runs[0].bit / 8u;
  }
  // Puts the channels' bits into a pixel whose bits there are 0.
  EBNET_INLINE void put(std::uint64_t* pixel, std::uint32_t bits) const {
    for (int r = 0; r < count; ++r) {
      pixel[runs[r].word] |= static_cast<std::uint64_t>(bits >> runs[r].first & runs[r].mask) << runs[r].bit;
    }
  }

  int count = 0;
  Run runs[kMost];
};

}  // namespace
}  // namespace ebnet
