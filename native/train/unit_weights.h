// An expert's weights in the orders that the tiles read: from torch's [out][channel][tap] to [row][run][lane] and on.
#pragma once
#include "train/unit_view.h"

namespace ebnet {
namespace {

inline size_t weights_of(const UnitLayer& layer, const View& v, int expert, int group, int row) {
  const size_t out = size(expert) * size(layer.shape.out_channels) + size(group * v.rows + row);
  return out * size(v.channels) * size(v.down.all * v.right.all);
}

// The first tap of a run among all of a kernel.
inline int first_tap(const View& v, int run) {
  return (v.down.first + kernel_row(v, run)) * v.right.all + v.right.first + kernel_column(v, run);
}

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

inline bool all_seen(const View& v) { return v.down.count * v.right.count == v.down.all * v.right.all; }

// Whether all taps of a kernel are packed one after another.
inline bool packed_whole(const View& v) {
  return v.run == v.padded && v.joined && all_seen(v);
}

// Channels of all taps, [channel][tap], to [tap][channel], and back.
inline void taps_first(const float* from, int channels, int taps, float* to, size_t to_line) {
  taps == 9 ? transpose_nines(from, channels, to, to_line)
            : transpose(from, size(taps), channels, taps, to, to_line);
}

inline void channels_first(const float* from, int channels, int taps, float* to) {
  taps == 9 ? transpose_to_nines(from, size(channels), channels, to)
            : transpose(from, size(channels), taps, channels, to, size(taps));
}

inline void pack_rows(const UnitLayer& layer, const View& v, int expert, const RowsOf& rows, float* packed) {
  const int all = v.down.all * v.right.all, taps = v.joined ? v.right.count : 1;
  for (int row = 0; row < rows.count; ++row, packed += v.width) {
    const float* from = layer.theta + weights_of(layer, v, expert, rows.group, rows.row + row);
    fetch_ahead(from + v.channels * all, size(v.channels * all));
    if (packed_whole(v)) {
      taps_first(from, v.channels, all, packed, size(v.channels));
      continue;
    }
    for (int run = 0; run < v.runs; ++run) {
      float* to = packed + size(run) * size(v.padded);
      transpose(from + first_tap(v, run), size(all), v.channels, taps, to, size(v.channels));
      for (int lane = v.run; lane < v.padded; ++lane) to[lane] = 0.0f;
    }
  }
}

inline void unpack_rows(const View& v, const RowsOf& rows, const float* packed, float* to) {
  const int all = v.down.all * v.right.all, taps = v.joined ? v.right.count : 1;
  const size_t each = size(v.channels) * size(all);
  for (int row = 0; row < rows.count; ++row, packed += v.width, to += each) {
    fetch_ahead(to + each, each);
    if (packed_whole(v)) {
      channels_first(packed, v.channels, all, to);
      continue;
    }
    if (!all_seen(v)) std::memset(to, 0, each * sizeof(float));  // taps that see nothing
    for (int run = 0; run < v.runs; ++run) {
      transpose(packed + size(run) * size(v.padded), size(v.channels), taps, v.channels, to + first_tap(v, run),
                size(all));
    }
  }
}

// Whether torch's order is the packed one: a single tap, and no padding.
inline bool packed_already(const View& v) { return v.down.all * v.right.all == 1 && v.run == v.padded; }

// Rows packed into `memory`, or where they are.
inline const float* packed_rows(const UnitLayer& layer, const View& v, int expert, const RowsOf& rows, float* memory) {
  if (packed_already(v)) return layer.theta + weights_of(layer, v, expert, rows.group, rows.row);
  pack_rows(layer, v, expert, rows, memory);
  return memory;
}

inline size_t packed_floats(const View& v) { return size(least(v.rows, 2 * kLanes)) * v.width; }

inline void copy_vectors(const float* from, bool two, float* to) {
  store(to, load(from));
  if (two) store(to + kLanes, load(from + kLanes));
}

// Forward: [panel of two vectors of output channels][run][lane of the run][output channel].
inline int panels_of(const View& v) { return ceil_div(v.rows, 2 * kLanes); }
inline size_t panel_floats(const View& v) { return size(v.runs) * size(v.run) * 2 * kLanes; }
inline bool wide_panel(const View& v, int panel) { return v.rows - panel * 2 * kLanes > kLanes; }

// The lane of each of an output channel's weights in torch's order, where all taps are seen.
inline size_t panel_order_floats(const View& v) { return size(v.channels * v.down.all * v.right.all); }

inline void panel_order(const View& v, int* lane) {
  for (int c = 0; c < v.channels; ++c) {
    for (int tap = 0; tap < v.down.all * v.right.all; ++tap) *lane++ = tap * v.channels + c;
  }
}

inline void pack_panel(const UnitLayer& layer, const View& v, int expert, int group, int p, const int* order,
                       float* memory, float* panel) {
  const int lanes = wide_panel(v, p) ? 2 * kLanes : kLanes;
  const RowsOf rows = {group, p * 2 * kLanes, least(lanes, v.rows - p * 2 * kLanes)};
  if (rows.count < lanes) std::memset(panel, 0, panel_floats(v) * sizeof(float));
  if (all_seen(v)) {
    const size_t each = panel_order_floats(v);
    transpose_to(layer.theta + weights_of(layer, v, expert, group, rows.row), each, rows.count, static_cast<int>(each),
                 [=](int weight) { return panel + size(order[weight] * lanes); });
  } else {
    pack_rows(layer, v, expert, rows, memory);
    for (int run = 0; run < v.runs; ++run) {
      transpose(memory + size(run) * size(v.padded), v.width, rows.count, v.run,
                panel + size(run) * size(v.run) * size(lanes), size(lanes));
    }
  }
  if (layer.binary_weights) take_signs(panel, size(v.runs * v.run * lanes));
}

// Input gradient: [panel of two vectors of input channels][tap][output channel][input channel].
inline int strips_of(const View& v) { return ceil_div(v.channels, 2 * kLanes); }
inline int taps_of(const View& v) { return v.down.count * v.right.count; }
inline bool wide_strip(const View& v, int strip) { return v.channels - strip * 2 * kLanes > kLanes; }
inline size_t strip_floats(const View& v) { return size(taps_of(v) * v.rows) * 2 * kLanes; }

inline void pack_strip(const UnitLayer& layer, const View& v, int expert, int group, int p, float* strip) {
  const int lanes = wide_strip(v, p) ? 2 * kLanes : kLanes, some = least(lanes, v.channels - p * 2 * kLanes);
  const int all = v.down.all * v.right.all, together = v.joined ? v.right.count : 1;
  const size_t each_tap = size(v.rows * lanes);
  if (some < lanes) std::memset(strip, 0, size(taps_of(v)) * each_tap * sizeof(float));
  for (int row = 0; row < v.rows; ++row) {
    const float* from = layer.theta + weights_of(layer, v, expert, group, row) + p * 2 * kLanes * all;
    float* to = strip + row * lanes;
    fetch_ahead(from + 2 * v.channels * all, size(some * all));
    if (all_seen(v)) {
      taps_first(from, some, all, to, each_tap);
      continue;
    }
    for (int run = 0; run < v.runs; ++run) {
      transpose(from + first_tap(v, run), size(all), some, together, to + size(run * together) * each_tap, each_tap);
    }
  }
  if (layer.binary_weights) take_signs(strip, size(taps_of(v)) * each_tap);
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

size_t direction_scratch(const UnitLayer& layer) { return packed_floats(view_of(layer.shape)); }

void pack_directions(const UnitLayer& layer, int expert, int group, float* scratch, float* directions) {
  const View v = view_of(layer.shape);
  for_tiles(v.rows, [&](int count, int row) {
    const size_t place = size(group * v.rows + row) * v.width * size(layer.experts);
    const float* packed = packed_rows(layer, v, expert, {group, row, count}, scratch);
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
