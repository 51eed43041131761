// An expert's weights in the orders that the tiles read: from torch's [out][channel][tap] to [row][run][lane] and on.
#pragma once
#include "train/unit_view.h"

namespace ebnet {
namespace {

inline size_t weights_of(const UnitLayer& layer, const View& v, int expert, int group, int row) {
  const size_t out = size(expert) * size(layer.shape.out_channels) + size(group * v.rows + row);
  return out * size(v.channels) * size(v.down.all * v.right.all);
}

inline int taps_in(const View& v) { return v.down.all * v.right.all; }
inline int taps_of(const View& v) { return v.down.count * v.right.count; }

// Asks for `count` floats that are read or written soon: a layer's weights lie in far memory, and are too many short
// pieces for it to foresee.
inline void fetch_ahead(const float* from, size_t count) {
  for (size_t i = 0; i < count; i += 16) __builtin_prefetch(from + i);
}

// Some output channels of one group. Their packed weights are [row][run][lane], zero where runs are padded. Only so
// many are packed at a time as stay in a near cache on their way.
struct RowsOf {
  int group, row, count;
};

// Whole vectors of weights to their signs.
inline void take_signs(float* weights, size_t count) {
  const Vector one = splat(1.0f);
  for (size_t i = 0; i < count; i += kLanes) store(weights + i, load(weights + i) >= Vector{} ? one : -one);
}

// Where a kernel's taps, in torch's order, are packed. Those that see nothing are packed to waste, and unpacked as zeros.
class TapPlaces {
 public:
  static size_t floats(const View& v) { return 2 * size(taps_in(v)) + 2 * size(v.channels); }
  TapPlaces(const View& v, float* memory)
      : number_(reinterpret_cast<int*>(memory)), place_(number_ + taps_in(v)), zeros_(memory + 2 * taps_in(v)),
        waste_(zeros_ + v.channels) {
    if (memory == nullptr) return;
    std::memset(zeros_, 0, size(v.channels) * sizeof(float));
    for (int tap = 0; tap < taps_in(v); ++tap) {
      const int down = tap / v.right.all - v.down.first, right = tap % v.right.all - v.right.first;
      const bool seen = down >= 0 && down < v.down.count && right >= 0 && right < v.right.count;
      number_[tap] = seen ? down * v.right.count + right : -1;
      place_[tap] = !seen ? -1 : v.joined ? down * v.padded + right * v.channels : number_[tap] * v.padded;
    }
  }
  int number(int tap) const { return number_[tap]; }  // among those that see the image; -1: it does not
  float* in_row(float* row, int tap) const { return place_[tap] < 0 ? waste_ : row + place_[tap]; }
  const float* in_row(const float* row, int tap) const { return place_[tap] < 0 ? zeros_ : row + place_[tap]; }

 private:
  int *number_, *place_;
  float *zeros_, *waste_;
};

// Channels of all taps, [channel][tap], to the lines line_of(tap), and back.
template <typename LineOf>
void to_tap_lines(const float* from, int channels, int taps, LineOf line_of) {
  if (taps == 1) {
    std::memcpy(line_of(0), from, size(channels) * sizeof(float));
    return;
  }
  taps == 9 ? transpose_nines(from, channels, line_of) : transpose_to(from, size(taps), channels, taps, line_of);
}

template <typename LineOf>
void from_tap_lines(LineOf line_of, int channels, int taps, float* to) {
  if (taps == 9) return transpose_to_nines(line_of, channels, to);
  for (int tap = 0; tap < taps; ++tap) {
    const float* line = line_of(tap);
    for (int c = 0; c < channels; ++c) to[c * taps + tap] = line[c];
  }
}

inline void pack_rows(const UnitLayer& layer, const View& v, const TapPlaces& taps, int expert, const RowsOf& rows,
                      float* packed) {
  const size_t each = size(v.channels * taps_in(v));
  const float* from = layer.theta + weights_of(layer, v, expert, rows.group, rows.row);
  for (int row = 0; row < rows.count; ++row, packed += v.width, from += each) {
    fetch_ahead(from + each, each);
    for (int run = 0; v.run < v.padded && run < v.runs; ++run) {
      std::memset(packed + run * v.padded + v.run, 0, size(v.padded - v.run) * sizeof(float));
    }
    to_tap_lines(from, v.channels, taps_in(v), [=](int tap) { return taps.in_row(packed, tap); });
  }
}

inline void unpack_rows(const View& v, const TapPlaces& taps, const RowsOf& rows, const float* packed, float* to) {
  const size_t each = size(v.channels * taps_in(v));
  for (int row = 0; row < rows.count; ++row, packed += v.width, to += each) {
    fetch_ahead(to + each, each);
    from_tap_lines([=](int tap) { return taps.in_row(packed, tap); }, v.channels, taps_in(v), to);
  }
}

// Whether torch's order is the packed one: a single tap, and no padding.
inline bool packed_already(const View& v) { return taps_in(v) == 1 && v.run == v.padded; }

// Rows packed into `memory`, or where they are.
inline const float* packed_rows(const UnitLayer& layer, const View& v, const TapPlaces& taps, int expert,
                                const RowsOf& rows, float* memory) {
  if (packed_already(v)) return layer.theta + weights_of(layer, v, expert, rows.group, rows.row);
  pack_rows(layer, v, taps, expert, rows, memory);
  return memory;
}

inline size_t packed_floats(const View& v) { return size(least(v.rows, kTileRows)) * v.width; }

inline void copy_vectors(const float* from, bool two, float* to) {
  store(to, load(from));
  if (two) store(to + kLanes, load(from + kLanes));
}

// Forward: [panel of two vectors of output channels][run][lane of the run][output channel], and behind each panel a
// lane for what no tap sees.
inline int panels_of(const View& v) { return ceil_div(v.rows, 2 * kLanes); }
inline int panel_lanes(const View& v) { return v.runs * v.run; }
inline size_t panel_floats(const View& v) { return size(panel_lanes(v) + 1) * 2 * kLanes; }
inline bool wide_panel(const View& v, int panel) { return v.rows - panel * 2 * kLanes > kLanes; }

// The lane of each of an output channel's weights in torch's order.
inline size_t panel_order_floats(const View& v) { return size(v.channels * taps_in(v)); }

inline void panel_order(const View& v, const TapPlaces& taps, int* lane) {
  for (int c = 0; c < v.channels; ++c) {
    for (int tap = 0; tap < taps_in(v); ++tap) {
      const int number = taps.number(tap);
      *lane++ = number < 0 ? panel_lanes(v) : number * v.channels + c;
    }
  }
}

inline void pack_panel(const UnitLayer& layer, const View& v, int expert, int group, int p, const int* order,
                       float* panel) {
  const int row = p * 2 * kLanes, lanes = wide_panel(v, p) ? 2 * kLanes : kLanes, rows = least(lanes, v.rows - row);
  const size_t each = panel_order_floats(v);
  if (rows < lanes) std::memset(panel, 0, panel_floats(v) * sizeof(float));
  const float* from = layer.theta + weights_of(layer, v, expert, group, row);
  fetch_ahead(from, size(rows) * each);
  transpose_to(from, each, rows, static_cast<int>(each), [=](int weight) { return panel + order[weight] * lanes; });
  if (layer.binary_weights) take_signs(panel, size(panel_lanes(v) * lanes));
}

// Input gradient: [panel of two vectors of input channels][tap][output channel][input channel], and behind each panel
// a line for taps that see nothing.
inline int strips_of(const View& v) { return ceil_div(v.channels, 2 * kLanes); }
inline bool wide_strip(const View& v, int strip) { return v.channels - strip * 2 * kLanes > kLanes; }
inline size_t strip_floats(const View& v) { return size(taps_of(v) * v.rows + 1) * 2 * kLanes; }

inline void pack_strip(const UnitLayer& layer, const View& v, const TapPlaces& taps, int expert, int group, int p,
                       float* strip) {
  const int lanes = wide_strip(v, p) ? 2 * kLanes : kLanes, some = least(lanes, v.channels - p * 2 * kLanes);
  const int all = taps_in(v), each = v.channels * all;
  float* const unseen = strip + taps_of(v) * v.rows * lanes;
  if (some < lanes) std::memset(strip, 0, strip_floats(v) * sizeof(float));
  const float* from = layer.theta + weights_of(layer, v, expert, group, 0) + p * 2 * kLanes * all;
  for (int row = 0; row < v.rows; ++row, from += each) {
    fetch_ahead(from + 2 * each, size(some * all));
    to_tap_lines(from, some, all, [=](int tap) {
      const int number = taps.number(tap);
      return number < 0 ? unseen : strip + (number * v.rows + row) * lanes;
    });
  }
  if (layer.binary_weights) take_signs(strip, size(taps_of(v) * v.rows * lanes));
}

// Weight gradient: the tiles of some rows, visit(run, lane, two, place) with the numbers of these rows before it. The
// rows are those of one tile of for_tiles.
template <typename Visit>
void for_tiles_of(const View& v, int rows, Visit visit) {
  size_t place = 0;
  for (int run = 0; run < v.runs; ++run) {
    for_vectors(v.padded, [&](int lane, bool two) {
      visit(run, lane, two, place);
      place += size(rows) * (two ? 2 * kLanes : kLanes);
    });
  }
}

// Packed rows to tiles [tile][number of this part][row][lanes] with `parts` in each tile.
inline void to_tiles(const View& v, int rows, int parts, int part, const float* packed, float* tiles) {
  for_tiles_of(v, rows, [&](int run, int lane, bool two, size_t place) {
    const size_t lanes = two ? 2 * kLanes : kLanes;
    float* to = tiles + place * size(parts) + size(part * rows) * lanes;
    const float* from = packed + size(run) * size(v.padded) + size(lane);
    for (int r = 0; r < rows; ++r, to += lanes, from += v.width) copy_vectors(from, two, to);
  });
}

inline void from_tiles(const View& v, int rows, int parts, int part, const float* tiles, float* packed) {
  for_tiles_of(v, rows, [&](int run, int lane, bool two, size_t place) {
    const size_t lanes = two ? 2 * kLanes : kLanes;
    const float* from = tiles + place * size(parts) + size(part * rows) * lanes;
    float* to = packed + size(run) * size(v.padded) + size(lane);
    for (int r = 0; r < rows; ++r, from += lanes, to += v.width) copy_vectors(from, two, to);
  });
}

inline size_t group_floats(const View& v) { return size(v.rows) * v.width; }

// Floats of one expert's directions that stand for all pieces.
size_t direction_floats(const UnitLayer& layer) {
  const View v = view_of(layer.shape);
  return batch_in_one_piece(layer, v) ? 0 : size(v.groups) * group_floats(v);
}

size_t direction_scratch(const UnitLayer& layer) {
  const View v = view_of(layer.shape);
  return packed_floats(v) + TapPlaces::floats(v);
}

void pack_directions(const UnitLayer& layer, int expert, int group, float* scratch, float* directions) {
  const View v = view_of(layer.shape);
  const TapPlaces taps(v, scratch + packed_floats(v));
  for_tiles(v.rows, [&](int count, int row) {
    const size_t place = size(group * v.rows + row) * v.width * size(layer.experts);
    const float* packed = packed_rows(layer, v, taps, expert, {group, row, count}, scratch);
    to_tiles(v, count, layer.experts, expert, packed, directions + place);
  });
}

// Whether the clipped estimator's derivative is 1, and whether it is not at some weight; mostly it is at all of them.
inline Mask inside_clip(Vector weights) { return (weights < Vector{} ? -weights : weights) <= splat(1.0f); }

inline bool clips(const float* weights, size_t count) {
  Mask inside = Mask{} == Mask{};
  for (size_t i = 0; i < count; i += kLanes) inside &= inside_clip(load(weights + i));
  for (int lane = 0; lane < kLanes; ++lane) {
    if (inside[lane] == 0) return true;
  }
  return false;
}

// Their gradient through that derivative.
inline void through_clip(const float* weights, size_t count, float* gradient) {
  for (size_t i = 0; i < count; i += kLanes) {
    const Vector g = load_some(gradient + i, count - i);
    store_some(gradient + i, inside_clip(load_some(weights + i, count - i)) ? g : Vector{}, count - i);
  }
}

}  // namespace
}  // namespace ebnet
