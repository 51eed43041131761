// What a real layer's weights see: for each position of a tile the inputs under the kernel, or the average of a window.
//
//   seen[channel and tap][position]
//
// A 1x1 convolution over whole vectors of one image sees its input as it lies in memory.
#pragma once
#include "base/lanes.h"
#include "train/real_layer.h"

namespace ebnet {
namespace {

inline bool sees_as_it_lies(const RealLayer& layer, const TilePart& part) {
  const ConvShape& s = layer.shape;
  return layer.pool == 1 && s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0 &&
         part.images == 1 && part.run % kLanes == 0;
}

inline size_t plane(const RealLayer& layer) { return size(layer.map_h) * size(layer.map_w); }

// The output columns [begin, end) that a kernel column sees within the map.
struct Columns {
  Columns(const ConvShape& s, int kernel_column) {
    const int offset = kernel_column - s.pad_w;
    begin = offset >= 0 ? 0 : (-offset + s.stride_w - 1) / s.stride_w;
    end = s.in_w - 1 - offset < 0 ? 0 : (s.in_w - 1 - offset) / s.stride_w + 1;
    if (end > s.out_w()) end = s.out_w();
    if (begin > end) begin = end;
    from = begin * s.stride_w + offset;
  }
  int begin, end, from;
};

// visit(seen row, map row or null, columns, places of the row) for every row of every tap of every image.
template <typename Map, typename Visit>
void for_patches(const RealLayer& layer, const TilePart& part, Map* map, Visit visit) {
  const ConvShape& s = layer.shape;
  int line = 0;
  for (int channel = 0; channel < s.in_channels; ++channel) {
    for (int ky = 0; ky < s.kernel_h; ++ky) {
      for (int kx = 0; kx < s.kernel_w; ++kx, ++line) {
        const Columns columns(s, kx);
        for (int image = 0; image < part.images; ++image) {
          Map* own = map + size((part.first_image + image) * s.in_channels + channel) * plane(layer);
          for (int row = 0; row < part.rows; ++row) {
            const int y = (part.first_row + row) * s.stride_h + ky - s.pad_h;
            const bool inside = y >= 0 && y < s.in_h;
            visit(line, size(image * part.run + row * s.out_w()), inside ? own + size(y * s.in_w) : nullptr, columns);
          }
        }
      }
    }
  }
}

// Every second of 2 * kLanes floats, and back: each float followed by a zero.
#if defined(__clang__)
inline Vector every_second(Vector low, Vector high) {
  Vector out;
  for (int i = 0; i < kLanes; ++i) out[i] = 2 * i < kLanes ? low[2 * i] : high[2 * i - kLanes];
  return out;
}
inline Vector with_zeros(Vector values, int half) {
  Vector out = {};
  for (int i = 0; i < kLanes; i += 2) out[i] = values[half * kLanes / 2 + i / 2];
  return out;
}
#else
inline Vector every_second(Vector low, Vector high) {
  Mask places = {};
  for (int i = 0; i < kLanes; ++i) places[i] = 2 * i;
  return __builtin_shuffle(low, high, places);
}
inline Vector with_zeros(Vector values, int half) {
  Mask places = {};
  for (int i = 0; i < kLanes; ++i) places[i] = i % 2 == 0 ? half * kLanes / 2 + i / 2 : kLanes;
  return __builtin_shuffle(values, Vector{}, places);
}
#endif

// to[i] = from[stride * i] in whole vectors as long as they end before `end`: up to kLanes - 1 places behind the last are
// written too.
inline void copy_row(const float* from, const float* end, int stride, int count, float* to) {
  int i = 0;
  if (stride == 1) {
    for (; i < count && end - from - i >= kLanes; i += kLanes) store(to + i, load(from + i));
  } else if (stride == 2) {
    for (; i < count && end - from - 2 * i >= 2 * kLanes; i += kLanes) {
      store(to + i, every_second(load(from + 2 * i), load(from + 2 * i + kLanes)));
    }
  }
  for (; i < count; ++i) to[i] = from[stride * i];
}

// to[stride * i] += from[i]; what lies between stays.
inline void add_row(const float* from, const float* end, int stride, int count, float* to) {
  int i = 0;
  if (stride == 1) {
    for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + load(from + i));
  } else if (stride == 2) {
    for (; i + kLanes <= count && end - to - 2 * i >= 2 * kLanes; i += kLanes) {
      const Vector values = load(from + i);
      store(to + 2 * i, load(to + 2 * i) + with_zeros(values, 0));
      store(to + 2 * i + kLanes, load(to + 2 * i + kLanes) + with_zeros(values, 1));
    }
  }
  for (; i < count; ++i) to[stride * i] += from[i];
}

// Lines and the rows of a line are written one after another, so that what a row writes too much is overwritten, and
// behind the last row are zeros.
inline void pack_patches(const RealLayer& layer, const TilePart& part, size_t width, float* seen) {
  const ConvShape& s = layer.shape;
  const float* end = layer.x + size(layer.batch * s.in_channels) * plane(layer);
  const size_t last = size(part.positions - s.out_w());
  for_patches(layer, part, layer.x, [&](int line, size_t place, const float* row, const Columns& columns) {
    float* to = seen + size(line) * width + place;
    int behind = 0;
    if (row != nullptr) {
      for (int x = 0; x < columns.begin; ++x) to[x] = 0.0f;
      copy_row(row + columns.from, end, s.stride_w, columns.end - columns.begin, to + columns.begin);
      behind = columns.end;
    }
    const int until = place == last ? static_cast<int>(width - place) : s.out_w();
    for (int x = behind; x < until; ++x) to[x] = 0.0f;
  });
}

inline void add_patches(const RealLayer& layer, const TilePart& part, size_t width, const float* dseen) {
  const float* end = layer.dx + size((part.first_image + part.images) * layer.shape.in_channels) * plane(layer);
  for_patches(layer, part, layer.dx, [&](int line, size_t place, float* row, const Columns& columns) {
    if (row == nullptr) return;
    const float* from = dseen + size(line) * width + place + columns.begin;
    add_row(from, end, layer.shape.stride_w, columns.end - columns.begin, row + columns.from);
  });
}

// visit(channel, place, first place of the window in the map, window height, window width) for every window of a tile.
template <typename Visit>
void for_windows(const RealLayer& layer, const TilePart& part, Visit visit) {
  const ConvShape& s = layer.shape;
  const int side = layer.pool;
  for (int channel = 0; channel < s.in_channels; ++channel) {
    size_t place = 0;
    for (int image = 0; image < part.images; ++image) {
      const size_t own = size((part.first_image + image) * s.in_channels + channel) * plane(layer);
      for (int row = part.first_row; row < part.first_row + part.rows; ++row) {
        const int height = layer.map_h - row * side < side ? layer.map_h - row * side : side;
        for (int column = 0; column < s.out_w(); ++column, ++place) {
          const int width = layer.map_w - column * side < side ? layer.map_w - column * side : side;
          visit(channel, place, own + size(row * side * layer.map_w + column * side), height, width);
        }
      }
    }
  }
}

// The common case: all windows are whole and 2 x 2.
inline bool even_halves(const RealLayer& layer) {
  return layer.pool == 2 && layer.map_h % 2 == 0 && layer.map_w % 2 == 0;
}

// visit(seen row, its two rows of the map) for every output row of every image and channel.
template <typename Map, typename Visit>
void for_halves(const RealLayer& layer, const TilePart& part, Map* map, Visit visit) {
  const ConvShape& s = layer.shape;
  for (int channel = 0; channel < s.in_channels; ++channel) {
    for (int image = 0; image < part.images; ++image) {
      Map* own = map + size((part.first_image + image) * s.in_channels + channel) * plane(layer);
      for (int row = 0; row < part.rows; ++row) {
        Map* upper = own + size(2 * (part.first_row + row) * layer.map_w);
        visit(channel, size(image * part.run + row * s.out_w()), upper, upper + layer.map_w);
      }
    }
  }
}

inline void pack_averages(const RealLayer& layer, const TilePart& part, size_t width, float* seen) {
  if (even_halves(layer)) {
    const int out_w = layer.shape.out_w();
    return for_halves(layer, part, layer.x, [&](int channel, size_t place, const float* upper, const float* lower) {
      float* to = seen + size(channel) * width + place;
      for (int x = 0; x < out_w; ++x) {
        to[x] = 0.25f * (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1]);
      }
    });
  }
  const size_t line = size(layer.map_w);
  for_windows(layer, part, [&](int channel, size_t place, size_t at, int rows, int columns) {
    const float* from = layer.x + at;
    float sum = 0.0f;
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) sum += from[size(y) * line + size(x)];
    }
    seen[size(channel) * width + place] = sum / static_cast<float>(rows * columns);
  });
}

inline void spread_averages(const RealLayer& layer, const TilePart& part, size_t width, const float* dseen) {
  if (even_halves(layer) && !layer.accumulate) {
    const int out_w = layer.shape.out_w();
    return for_halves(layer, part, layer.dx, [&](int channel, size_t place, float* upper, float* lower) {
      const float* from = dseen + size(channel) * width + place;
      for (int x = 0; x < out_w; ++x) {
        upper[2 * x] = upper[2 * x + 1] = lower[2 * x] = lower[2 * x + 1] = 0.25f * from[x];
      }
    });
  }
  const size_t line = size(layer.map_w);
  for_windows(layer, part, [&](int channel, size_t place, size_t at, int rows, int columns) {
    float* to = layer.dx + at;
    const float each = dseen[size(channel) * width + place] / static_cast<float>(rows * columns);
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        float& place_of_x = to[size(y) * line + size(x)];
        place_of_x = layer.accumulate ? place_of_x + each : each;
      }
    }
  });
}

// Where a tile's input lies as seen[line][place], and how far apart its lines are; `room` is used unless it lies so.
struct Seen {
  Seen(const RealLayer& layer, const RealTiles& tiles, const TilePart& part, float* room) {
    if (sees_as_it_lies(layer, part)) {
      lines = layer.x + size(part.first_image * layer.shape.in_channels) * plane(layer) +
              size(part.first_row * layer.shape.out_w());
      apart = plane(layer);
      return;
    }
    lines = room;
    apart = size(tiles.width);
    if (layer.pool == 1) {
      pack_patches(layer, part, apart, room);
      return;
    }
    for (int line = 0; line < layer.shape.in_channels; ++line) {
      for (int place = part.positions; place < tiles.width; ++place) room[size(line) * apart + size(place)] = 0.0f;
    }
    pack_averages(layer, part, apart, room);
  }
  const float* lines;
  size_t apart;
};

// dseen of a tile into dx. The first tile of an image clears what patches are added to.
inline void unpack(const RealLayer& layer, const TilePart& part, size_t width, const float* dseen) {
  if (layer.pool > 1) return spread_averages(layer, part, width, dseen);
  const size_t image = size(layer.shape.in_channels) * plane(layer);
  if (part.first_row == 0 && !layer.accumulate) {
    std::memset(layer.dx + size(part.first_image) * image, 0, size(part.images) * image * sizeof(float));
  }
  add_patches(layer, part, width, dseen);
}

}  // namespace
}  // namespace ebnet
