// The forward convolution by bits, where input and weights are signs: both as words of 32 channels.
//
// A word takes the place of a number, so a group is seen as one of a single channel for each 32 of its own: planes
// [plane][line][column], and behind them the mask (sign_tiles.h). Channels that a last word does not have are 0 on both
// sides. Lanes are pixels while words of the input are made, and taps while those of weights are (channels, where there is
// but one tap): no map is transposed.
#pragma once
#include "train/sign_tiles.h"
#include "train/unit_seen.h"
#include "train/unit_weights.h"

namespace ebnet {
namespace {

constexpr int kWord = 32;

inline int planes_of(const View& v) { return ceil_div(v.channels, kWord); }
inline size_t sign_plane(const View& v) { return size(v.lines) * size(v.columns); }

// The group as its tiles see it.
inline View view_of_signs(const View& v) {
  View signs = v;
  signs.channels = 1;
  signs.run = v.joined ? v.right.count : 1;
  signs.seen = size(planes_of(v) + 1) * sign_plane(v);
  return signs;
}

// Zero or more vectors from a place on, of which nothing is read at `end` or behind it.
inline Vector load_until(const float* from, const float* end) {
  return end - from >= kLanes ? load(from) : load_some(from, end > from ? static_cast<size_t>(end - from) : 0);
}

inline Words sign_bit(Vector value, int channel) {
  return reinterpret_cast<Words>(value >= Vector{}) & (std::uint32_t{1} << channel);
}

// The words of one plane for `count` pixels of the image from x on, a channel every `apart` floats; `words` has room for
// whole blocks of vectors.
inline void sign_words(const Normal& normal, int first_channel, int channels, const float* x, const float* end,
                       size_t apart, size_t count, float* words) {
  constexpr size_t kVectors = 4;
  for (size_t pixel = 0; pixel < count; pixel += kVectors * kLanes) {
    Words bits[kVectors] = {};
    for (int c = 0; c < channels; ++c) {
      const float* from = x + size(c) * apart + pixel;
      const int at = first_channel + c;
      const Vector mean = splat(normal.mean[at]), rstd = splat(normal.rstd[at]);
      const Vector gamma = splat(normal.gamma[at]), beta = splat(normal.beta[at]);
      const auto add = [&](size_t i, Vector value) {
        const Vector hat = (value - mean) * rstd;
        bits[i] |= sign_bit(hat * gamma + beta, c);
      };
      if (count - pixel > (kVectors - 1) * kLanes && end - from >= static_cast<std::ptrdiff_t>(kVectors * kLanes)) {
#pragma GCC unroll 4
        for (size_t i = 0; i < kVectors; ++i) add(i, load(from + i * kLanes));
        continue;
      }
#pragma GCC unroll 4
      for (size_t i = 0; i < kVectors; ++i) {
        if (pixel + i * kLanes < count) add(i, load_until(from + i * kLanes, end));
      }
    }
    std::memcpy(words + pixel, bits, sizeof bits);
  }
}

inline size_t sign_word_floats(const View& v) { return size(v.lines * v.in_w + 4 * kLanes); }

// Lines [first, first + lines) of a group of one sample as planes and mask; `end` is the end of all of x.
inline void see_signs(const View& v, const Normal& normal, const float* x, const float* end, int first, int lines,
                      float* signs, float* words) {
  const Rows rows = image_rows(v, first, lines);
  const size_t plane = sign_plane(v), columns = size(v.columns), left = size(left_of(v)), used = size(used_of(v));
  const size_t width = size(v.in_w), apart = size(v.in_h) * width, planes = size(planes_of(v));
  std::memset(signs, 0, (planes + 1) * plane * sizeof(float));
  for (size_t p = 0; p < planes; ++p) {
    const int channel = static_cast<int>(p) * kWord;
    sign_words(normal, channel, least(kWord, v.channels - channel), x + size(channel) * apart + size(rows.begin) * width,
               end, apart, size(rows.end - rows.begin) * width, words);
    for (int y = rows.begin; y < rows.end; ++y) {
      std::memcpy(signs + p * plane + size(y - first) * columns + left,
                  words + size(y - rows.begin) * width + size(first_column(v)), used * sizeof(float));
    }
  }
  for (int y = rows.begin; y < rows.end; ++y) {
    std::memset(signs + planes * plane + size(y - first) * columns + left, 0xff, used * sizeof(float));
  }
}

// Weights: [panel of two vectors of output channels][plane][run][tap of the run][output channel].
inline size_t sign_plane_weights(const View& v, int lanes) { return size(taps_of(v)) * size(lanes); }
inline size_t sign_panel_floats(const View& v) { return size(planes_of(v)) * sign_plane_weights(v, 2 * kLanes); }

// The signs of up to 32 numbers that follow each other.
inline std::uint32_t sign_word(const float* from, int count) {
  Words place = {}, bits = {};
  for (int i = 0; i < kLanes; ++i) place[i] = std::uint32_t{1} << i;
  for (int i = 0; i < count; i += kLanes) {
    bits |= (reinterpret_cast<Words>(load_some(from + i, size(count - i)) >= Vector{}) & place) << i;
  }
  std::uint32_t word = 0;
  for (int i = 0; i < kLanes; ++i) word |= bits[i];
  return count == kWord ? word : word & ((std::uint32_t{1} << count) - 1);
}

inline void pack_sign_panels(const UnitLayer& layer, const View& v, int expert, int group, float* panels) {
  const int all = v.down.all * v.right.all;
  const float* const end = layer.theta + weights_of(layer, v, layer.experts, 0, 0);
  std::memset(panels, 0, size(panels_of(v)) * sign_panel_floats(v) * sizeof(float));
  for (int row = 0; row < v.rows; ++row) {
    const int panel = row / (2 * kLanes), lanes = wide_panel(v, panel) ? 2 * kLanes : kLanes;
    const float* from = layer.theta + weights_of(layer, v, expert, group, row);
    float* to = panels + size(panel) * sign_panel_floats(v) + row % (2 * kLanes);
    for (int p = 0; p < planes_of(v); ++p, from += kWord * all, to += sign_plane_weights(v, lanes)) {
      const int channels = least(kWord, v.channels - p * kWord);
      if (all == 1) {
        const std::uint32_t word = sign_word(from, channels);
        std::memcpy(to, &word, sizeof word);
        continue;
      }
      for (int first = 0; first < all; first += kLanes) {
        Words bits = {};
        for (int c = 0; c < channels; ++c) bits |= sign_bit(load_until(from + c * all + first, end), c);
        for (int tap = first; tap < least(all, first + kLanes); ++tap) {
          const int down = tap / v.right.all - v.down.first, right = tap % v.right.all - v.right.first;
          if (down < 0 || down >= v.down.count || right < 0 || right >= v.right.count) continue;
          const std::uint32_t word = bits[tap - first];
          std::memcpy(to + (down * v.right.count + right) * lanes, &word, sizeof word);
        }
      }
    }
  }
}

// How many of the taps see the image from each place of a row or column of outputs.
inline void taps_inside(const Taps& taps, int places, int stride, int pad, int dilation, int in, int factor, int* inside) {
  for (int at = 0; at < places; ++at) {
    inside[at] = 0;
    for (int k = 0; k < taps.count; ++k) {
      const int pixel = at * stride - pad + k * dilation;
      if (pixel >= 0 && pixel < in) inside[at] += factor;
    }
  }
}

// What a whole pass needs of them: the products that an output sees are down[row] * right[column].
struct Products {
  static size_t floats(const View& v) { return size(v.out_h + v.out_w); }
  Products(const View& v, float* memory) : down(reinterpret_cast<int*>(memory)), right(down + v.out_h) {
    if (memory == nullptr) return;
    taps_inside(v.down, v.out_h, v.stride_h, v.top, v.dilation_h, v.in_h, v.channels, down);
    taps_inside(v.right, v.out_w, v.stride_w, v.left, v.dilation_w, v.in_w, 1, right);
  }
  int *down, *right;
};

}  // namespace
}  // namespace ebnet
