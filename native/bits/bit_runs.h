// Where the bits of up to 16 neighbouring channels go in a pixel of the bit plane: groups of it and its words cut them
// into runs, each of which lies within one word. Found once for many pixels, divisions are slow.
#pragma once
#include <cstdint>

#include "base/inline.h"
#include "bits/planes.h"

namespace ebnet {
namespace {

struct BitRuns {
  struct Run {
    std::size_t word;
    unsigned first, bit;  // of the channels, of the word
    std::uint32_t mask;   // of the run's length
  };

  BitRuns() = default;
  EBNET_INLINE BitRuns(int channel, int channels, int per_group) {
    for (int first = 0, length = 0; first < channels; first += length) {
      const BitPlace place = bit_place(channel + first, per_group);
      const int in_word = 64 - static_cast<int>(place.bit);
      const int in_group = per_group - (channel + first) % per_group;
      length = in_word < in_group ? in_word : in_group;
      length = length < channels - first ? length : channels - first;
      runs[count++] = {place.word, static_cast<unsigned>(first), place.bit, (1u << length) - 1};
    }
  }

  // Whether the bits are bytes of their own.
  EBNET_INLINE bool are_bytes(int channels) const {
    return count == 0 || (count == 1 && runs[0].bit % 8 == 0 && channels % 8 == 0);
  }
  // Those bytes' place in a pixel.
  EBNET_INLINE std::size_t first_byte() const {
    return count == 0 ? 0 : runs[0].word * sizeof(std::uint64_t) + runs[0].bit / 8;
  }
  // Puts the channels' bits into a pixel whose bits there are 0.
  EBNET_INLINE void put(std::uint64_t* pixel, std::uint32_t bits) const {
    for (int r = 0; r < count; ++r) {
      pixel[runs[r].word] |= static_cast<std::uint64_t>(bits >> runs[r].first & runs[r].mask) << runs[r].bit;
    }
  }

  int count = 0;
  Run runs[16];
};

}  // namespace
}  // namespace ebnet
