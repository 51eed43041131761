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

// A packed group's signs in place; padding stays zero.
inline void take_signs(const View& v, float* packed) {
  for (int i = 0; i < v.rows * v.runs; ++i, packed += v.padded) {
    for (int lane = 0; lane < v.run; ++lane) packed[lane] = packed[lane] >= 0.0f ? 1.0f : -1.0f;
  }
}

// One group as [row][run][lane], zero where runs are padded; signs where `binary`.
inline void pack_rows(const UnitLayer& layer, const View& v, int expert, int group, bool binary, float* packed) {
  float* const first = packed;
  const int all = v.down.all * v.right.all, taps = v.joined ? v.right.count : 1;
  for (int row = 0; row < v.rows; ++row, packed += v.width) {
    const float* from = layer.theta + weights_of(layer, v, expert, group, row);
    if (v.run == v.padded && v.joined && v.runs * taps == all) {
      transpose(from, size(all), v.channels, all, packed, size(v.channels));
    } else {
      for (int run = 0; run < v.runs; ++run) {
        float* to = packed + size(run) * size(v.padded);
        transpose(from + first_tap(v, run), size(all), v.channels, taps, to, size(v.channels));
        for (int lane = v.run; lane < v.padded; ++lane) to[lane] = 0.0f;
      }
    }
  }
  if (binary) take_signs(v, first);
}

// Whether torch's order is the packed one already: a single tap, and no padding.
inline bool packed_already(const View& v) { return v.down.all * v.right.all == 1 && v.run == v.padded; }

// The weights of a group as [row][run][lane]: packed into `memory`, or where they are.
inline const float* packed_rows(const UnitLayer& layer, const View& v, int expert, int group, float* memory) {
  if (packed_already(v)) return layer.theta + weights_of(layer, v, expert, group, 0);
  pack_rows(layer, v, expert, group, false, memory);
  return memory;
}

// One output channel's gradient back; taps that see nothing have none.
inline void unpack_row(const View& v, const float* packed, float* to) {
  const int all = v.down.all * v.right.all, taps = v.joined ? v.right.count : 1;
  if (v.run == v.padded && v.joined && v.runs * taps == all) {
    return transpose(packed, size(v.channels), all, v.channels, to, size(all));
  }
  if (v.down.count * v.right.count < all) std::memset(to, 0, size(v.channels) * size(all) * sizeof(float));
  for (int run = 0; run < v.runs; ++run) {
    transpose(packed + size(run) * size(v.padded), size(v.channels), taps, v.channels, to + first_tap(v, run),
              size(all));
  }
}

inline void copy_vectors(const float* from, bool two, float* to) {
  store(to, load(from));
  if (two) store(to + kLanes, load(from + kLanes));
}

// Forward: [panel of two vectors of output channels][run][lane of the run][output channel].
inline int panels_of(const View& v) { return ceil_div(v.rows, 2 * kLanes); }
inline size_t panel_floats(const View& v) { return size(v.runs) * size(v.run) * 2 * kLanes; }
inline bool wide_panel(const View& v, int panel) { return v.rows - panel * 2 * kLanes > kLanes; }

inline void pack_panels(const View& v, const float* packed, float* panels) {
  for (int p = 0; p < panels_of(v); ++p, panels += panel_floats(v)) {
    const int lanes = wide_panel(v, p) ? 2 * kLanes : kLanes, rows = least(lanes, v.rows - p * 2 * kLanes);
    if (rows < lanes) std::memset(panels, 0, panel_floats(v) * sizeof(float));
    for (int run = 0; run < v.runs; ++run) {
      transpose(packed + size(p * 2 * kLanes) * v.width + size(run) * size(v.padded), v.width, rows, v.run,
                panels + size(run) * size(v.run) * size(lanes), size(lanes));
    }
  }
}

// Input gradient: [panel of two vectors of input channels][tap][output channel][input channel].
inline int strips_of(const View& v) { return ceil_div(v.channels, 2 * kLanes); }
inline int taps_of(const View& v) { return v.down.count * v.right.count; }
inline bool wide_strip(const View& v, int strip) { return v.channels - strip * 2 * kLanes > kLanes; }
inline size_t strip_floats(const View& v) { return size(taps_of(v) * v.rows) * 2 * kLanes; }

inline void pack_strips(const View& v, const float* packed, float* strips) {
  for (int p = 0; p < strips_of(v); ++p, strips += strip_floats(v)) {
    const int lanes = wide_strip(v, p) ? 2 * kLanes : kLanes, some = least(lanes, v.channels - p * 2 * kLanes);
    float* to = strips;
    for (int tap = 0; tap < taps_of(v); ++tap) {
      const int run = v.joined ? tap / v.right.count : tap, column = v.joined ? tap % v.right.count : 0;
      const float* from = packed + run * v.padded + column * v.channels + p * 2 * kLanes;
      for (int row = 0; row < v.rows; ++row, from += v.width, to += lanes) {
        if (some == lanes) {
          copy_vectors(from, wide_strip(v, p), to);
          continue;
        }
        std::memcpy(to, from, size(some) * sizeof(float));
        for (int lane = some; lane < lanes; ++lane) to[lane] = 0.0f;
      }
    }
  }
}

// Weight gradient: the tiles one after another, visit(row, rows, run, lane, two, place) with the numbers before it.
template <typename Visit>
void for_weight_tiles(const View& v, Visit visit) {
  size_t place = 0;
  for_tiles(v.rows, [&](int rows, int row) {
    for (int run = 0; run < v.runs; ++run) {
      for_vectors(v.padded, [&](int lane, bool two) {
        visit(row, rows, run, lane, two, place);
        place += size(rows) * (two ? 2 * kLanes : kLanes);
      });
    }
  });
}

// [row][run][lane] to tiles [tile][number of this part][row][lanes] with `parts` in each tile.
inline void to_tiles(const View& v, int parts, int part, const float* packed, float* tiles) {
  for_weight_tiles(v, [&](int row, int rows, int run, int lane, bool two, size_t place) {
    const size_t lanes = two ? 2 * kLanes : kLanes;
    float* to = tiles + place * size(parts) + size(part) * size(rows) * lanes;
    const float* from = packed + size(row) * v.width + size(run) * size(v.padded) + size(lane);
    for (int r = 0; r < rows; ++r, to += lanes, from += v.width) copy_vectors(from, two, to);
  });
}

inline void from_tiles(const View& v, int parts, int part, const float* tiles, float* packed) {
  for_weight_tiles(v, [&](int row, int rows, int run, int lane, bool two, size_t place) {
    const size_t lanes = two ? 2 * kLanes : kLanes;
    const float* from = tiles + place * size(parts) + size(part) * size(rows) * lanes;
    float* to = packed + size(row) * v.width + size(run) * size(v.padded) + size(lane);
    for (int r = 0; r < rows; ++r, from += lanes, to += v.width) copy_vectors(from, two, to);
  });
}

inline size_t group_floats(const View& v) { return size(v.rows) * v.width; }

size_t packed_floats(const UnitLayer& layer) {
  const View v = view_of(layer.shape);
  return size(v.groups) * group_floats(v);
}

void pack_directions(const UnitLayer& layer, int expert, int group, float* scratch, float* directions) {
  const View v = view_of(layer.shape);
  to_tiles(v, layer.experts, expert, packed_rows(layer, v, expert, group, scratch),
           directions + size(group) * group_floats(v) * size(layer.experts));
}

// The clipped estimator's derivative at one expert's weights, as a tile's numbers; false where it is 1 for all of them.
inline bool clip_mask(const float* theta, size_t count, float* mask) {
  Mask other = {};
  const Vector one = splat(1.0f);
  for (size_t i = 0; i < count; i += kLanes) {
    const Vector t = load(theta + i), m = (t < Vector{} ? -t : t) <= one ? one : Vector{};
    other |= m != one;
    store(mask + i, m);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (other[lane] != 0) return true;
  }
  return false;
}

}  // namespace
}  // namespace ebnet
