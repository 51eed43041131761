// Bits to the bytes of tiles: +1 and -1, and exact 0 where there is no input.
#pragma once
#include <cstring>

#include "bconv/amx_layout.h"
#include "bconv/avx512_intrinsics.h"

namespace ebnet::amx {
namespace {

// The weights of one output tile at one step: a word is a row of the tile. Rows past the run's last input are 0, so
// that the activations there, which belong to other outputs, count nothing.
inline void expand_weights(const Layout& layout, const Step& step, const std::uint64_t* words, std::uint8_t* tile) {
  const __m512i minus = _mm512_set1_epi8(-1), plus = _mm512_set1_epi8(1);
  words += step.word;
  const int filled = static_cast<int>(step.words);
  const bool ends_run = (step.word + step.words) % static_cast<std::uint32_t>(layout.run_words) == 0;
  const int last_inputs = layout.run_inputs % kQuad;  // in the run's last word, where it is not full
#pragma GCC unroll 4
  for (int row = 0; row < filled; ++row) {
    _mm512_storeu_si512(tile + row * 64, _mm512_mask_blend_epi8(words[row], minus, plus));
  }
  for (int row = filled; row < kTileRows; ++row) _mm512_storeu_si512(tile + row * 64, _mm512_setzero_si512());
  if (ends_run && last_inputs != 0) {
    const std::uint64_t used = 0x1111111111111111u * ((1u << last_inputs) - 1);
    const __m512i signs = _mm512_mask_blend_epi8(words[filled - 1], minus, plus);
    _mm512_storeu_si512(tile + (filled - 1) * 64, _mm512_maskz_mov_epi8(used, signs));
  }
}

// The signs of kBytes inputs of one pixel.
template <int kBytes>
inline void expand_word(std::uint64_t bits, std::uint8_t* to) {
  if constexpr (kBytes == 64) {
    _mm512_storeu_si512(to, _mm512_mask_blend_epi8(bits, _mm512_set1_epi8(-1), _mm512_set1_epi8(1)));
  } else if constexpr (kBytes == 32) {
    const auto mask = static_cast<__mmask32>(bits);
    const __m256i signs = _mm256_mask_blend_epi8(mask, _mm256_set1_epi8(-1), _mm256_set1_epi8(1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), signs);
  } else {
    const auto mask = static_cast<__mmask16>(bits);
    const __m128i signs = _mm_mask_blend_epi8(mask, _mm_set1_epi8(-1), _mm_set1_epi8(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), signs);
  }
}

// The pixels of one image row; up to kBytes - 1 bytes past the last are written too.
template <int kBytes>
inline void expand_pixels(const ConvShape& s, const std::uint64_t* words, std::uint8_t* to) {
  // Copies, since a store of bytes may change anything the compiler does not hold in a register.
  const int pixels = s.in_w, cell = s.in_per_group();
  const int group_words = kBytes < kTileInputs ? 1 : s.words_per_group();
  const std::size_t pixel_words = static_cast<std::size_t>(s.words_per_pixel());
  for (int x = 0; x < pixels; ++x, words += pixel_words, to += cell) {
    for (int w = 0; w < group_words; ++w) expand_word<kBytes>(words[w], to + w * kTileInputs);
  }
}

// Expands strips, row by row. A strip is written from front to back, because whole vectors may touch what lies after
// them: 63 bytes past its last phase at most.
class StripExpander {
 public:
  StripExpander(const ConvTask& task, const Layout& layout) : task_(task), layout_(layout) {
    const int inputs = task.shape->in_per_group();
    expand_pixels_ = inputs <= 16 ? expand_pixels<16> : inputs <= 32 ? expand_pixels<32> : expand_pixels<64>;
  }

  // Next is the strip of output rows [row, row + rows) of one group.
  void begin(int group, int row, int rows, std::uint8_t* strip) {
    words_ = task_.input + static_cast<std::size_t>(group * task_.shape->words_per_group());
    strip_ = strip;
    row_ = row;
    phase_rows_ = rows + layout_.halo_rows;
    total_rows_ = layout_.phases * phase_rows_;
    done_ = 0;
  }

  // Expands at least the first part / parts of it.
  void advance(std::int64_t part, std::int64_t parts) {
    while (done_ * parts < total_rows_ * part) expand_row();
  }

 private:
  void expand_row() {
    const ConvShape& s = *task_.shape;
    const int phase = done_ / phase_rows_, row = done_ % phase_rows_;
    const std::size_t cell = static_cast<std::size_t>(s.in_per_group());
    const std::size_t left = static_cast<std::size_t>(s.pad_w) * cell;
    const std::size_t right = left + static_cast<std::size_t>(s.in_w) * cell;
    const std::size_t row_words = static_cast<std::size_t>(s.in_w) * static_cast<std::size_t>(s.words_per_pixel());
    std::uint8_t* to = strip_ + static_cast<std::size_t>(phase) * layout_.phase_bytes +
                       static_cast<std::size_t>(row) * layout_.row_bytes;
    const int y = (row_ + row) * s.stride_h + phase - s.pad_h;
    if (y < 0 || y >= s.in_h) {
      std::memset(to, 0, layout_.row_bytes);
    } else {
      std::memset(to, 0, left);
      expand_pixels_(s, words_ + static_cast<std::size_t>(y) * row_words, to + left);
      std::memset(to + right, 0, layout_.row_bytes - right);
    }
    if (row + 1 == phase_rows_) std::memset(to + layout_.row_bytes, 0, left);
    ++done_;
  }

  const ConvTask& task_;
  const Layout& layout_;
  void (*expand_pixels_)(const ConvShape&, const std::uint64_t*, std::uint8_t*);
  const std::uint64_t* words_ = nullptr;  // of the group, in the first pixel
  std::uint8_t* strip_ = nullptr;
  int row_ = 0, phase_rows_ = 0;
  int total_rows_ = 0, done_ = 0;  // of all phases
};

}  // namespace
}  // namespace ebnet::amx
