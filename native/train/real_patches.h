// What a real layer's weights see: for each position of a tile the inputs under the kernel, or the average of a window.
//
//   seen[channel and tap][position]
//
// A 1x1 convolution over whole vectors of one image sees its input as it lies in memory.
#pragma once
#include "train/phase_rows.h"
#include "train/real_layer.h"

namespace ebnet {
namespace {

inline size_t plane(const RealLayer& layer) { return size(layer.map_h) * size(layer.map_w); }

inline bool sees_pixels(const RealLayer& layer) {
  const ConvShape& s = layer.shape;
  return layer.pool == 1 && s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0;
}

inline bool sees_as_it_lies(const RealLayer& layer, const TilePart& part) {
  return sees_pixels(layer) && part.images == 1 && part.run % kLanes == 0;
}

// visit(line, place of the image's run in it, its pixels in the map) for every channel (a line) and image of a tile.
template <typename Map, typename Visit>
void for_pixels(const RealLayer& layer, const TilePart& part, Map* map, Visit visit) {
  const ConvShape& s = layer.shape;
  for (int channel = 0; channel < s.in_channels; ++channel) {
    for (int image = 0; image < part.images; ++image) {
      visit(channel, size(image * part.run),
            map + size((part.first_image + image) * s.in_channels + channel) * plane(layer) +
                size(part.first_row * s.out_w()));
    }
  }
}

inline void pack_pixels(const RealLayer& layer, const TilePart& part, size_t width, float* seen) {
  for_pixels(layer, part, layer.x, [&](int line, size_t place, const float* from) {
    std::memcpy(seen + size(line) * width + place, from, size(part.run) * sizeof(float));
  });
  for (int line = 0; line < layer.shape.in_channels; ++line) {
    std::memset(seen + size(line) * width + part.positions, 0, (width - size(part.positions)) * sizeof(float));
  }
}

inline void spread_pixels(const RealLayer& layer, const TilePart& part, size_t width, const float* dseen) {
  for_pixels(layer, part, layer.dx, [&](int line, size_t place, float* to) {
    const float* from = dseen + size(line) * width + place;
    if (!layer.accumulate) {
      std::memcpy(to, from, size(part.run) * sizeof(float));
      return;
    }
    int i = 0;
    for (; i + kLanes <= part.run; i += kLanes) store(to + i, load(to + i) + load(from + i));
    for (; i < part.run; ++i) to[i] += from[i];
  });
}

// visit(plane of phase (row's phase, 0) at the row, row of the map or null) for every row of a tile's planes of a channel.
template <typename Map, typename Visit>
void for_plane_rows(const RealLayer& layer, const TapPlanes& planes, const TilePart& part, Map* channel, float* memory,
                    Visit visit) {
  const ConvShape s = layer.shape;  // copies, as below
  const int first = part.first_row - planes.top, rows = planes.rows, pitch = planes.pitch, images = part.images;
  const size_t of_image = planes.image, of_row = size(s.stride_w) * planes.map, step = size(s.in_channels) * plane(layer);
  for (int image = 0; image < images; ++image, channel += step, memory += of_image) {
    int y = first * s.stride_h;
    for (int row = 0; row < rows; ++row) {
      float* of_phase = memory + size(row * pitch);
      for (int phase = 0; phase < s.stride_h; ++phase, ++y, of_phase += of_row) {
        visit(of_phase, y >= 0 && y < s.in_h ? channel + size(y * s.in_w) : nullptr);
      }
    }
  }
}

// visit(line, place of the row in it, what the tap sees of the row in a plane) for every tap, image and output row.
template <typename Visit>
void for_taps(const RealLayer& layer, const TapPlanes& planes, const TilePart& part, int channel, float* memory,
              Visit visit) {
  const ConvShape s = layer.shape;  // copies: for all the compiler knows, floats that are written could be them
  const int pitch = planes.pitch, rows = part.rows, images = part.images;
  const size_t step = size(s.out_w()), of_image = planes.image;
  int line = channel * s.taps();
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    const Split down(ky - s.pad_h, s.stride_h);
    for (int kx = 0; kx < s.kernel_w; ++kx, ++line) {
      const Split right(kx - s.pad_w, s.stride_w);
      float* from = memory + size(down.phase * s.stride_w + right.phase) * planes.map +
                    size((planes.top + down.shift) * planes.pitch + planes.left + right.shift);
      size_t place = 0;
      for (int image = 0; image < images; ++image, from += of_image) {
        float* seen = from;
        for (int row = 0; row < rows; ++row, seen += pitch, place += step) visit(line, place, seen);
      }
    }
  }
}

// Lines and the rows of a line are written one after another, so that what a row writes too much is overwritten; behind
// the last row are zeros. A vector behind the last line may be written too.
inline void pack_patches(const RealLayer& layer, const TapPlanes& planes, const TilePart& part, size_t width,
                         float* memory, float* seen) {
  const ConvShape& s = layer.shape;
  const float* end = layer.x + size(layer.batch * s.in_channels) * plane(layer);
  const int left = planes.left, room = planes.pitch - left, phases = s.stride_w, in_w = s.in_w, out_w = s.out_w();
  const size_t map = planes.map, last = size(part.positions - out_w);
  for (int channel = 0; channel < s.in_channels; ++channel) {
    const float* own = layer.x + size(part.first_image * s.in_channels + channel) * plane(layer);
    for_plane_rows(layer, planes, part, own, memory, [=](float* to, const float* row) {
      if (left > 0) {
        for (int phase = 0; phase < phases; ++phase) store(to + size(phase) * map, Vector{});
      }
      const bool inside = row != nullptr;
      split_row(inside ? row : own, end, inside ? in_w : 0, phases, 0.0f, room, map, to + left);
    });
    for_taps(layer, planes, part, channel, memory, [=](int line, size_t place, const float* from) {
      float* to = seen + size(line) * width + place;
      for (int i = 0; i < out_w; i += kLanes) store(to + i, load(from + i));
      if (place < last) return;
      for (size_t i = size(out_w); place + i < width; ++i) to[i] = 0.0f;
    });
  }
}

inline void add_patches(const RealLayer& layer, const TapPlanes& planes, const TilePart& part, size_t width,
                        const float* dseen, float* memory) {
  const ConvShape& s = layer.shape;
  const float* end = layer.dx + size((part.first_image + part.images) * s.in_channels) * plane(layer);
  const int room = planes.pitch - planes.left, out_w = s.out_w();
  for (int channel = 0; channel < s.in_channels; ++channel) {
    std::memset(memory, 0, size(part.images) * planes.image * sizeof(float));
    for_taps(layer, planes, part, channel, memory, [=](int line, size_t place, float* to) {
      const float* from = dseen + size(line) * width + place;
      for (int i = 0; i < out_w; i += kLanes) store(to + i, load(to + i) + first_of(out_w - i, load(from + i), 0.0f));
    });
    float* own = layer.dx + size(part.first_image * s.in_channels + channel) * plane(layer);
    for_plane_rows(layer, planes, part, own, memory, [&](const float* from, float* row) {
      if (row != nullptr) add_joined_row(from + planes.left, planes.map, room, s.stride_w, s.in_w, end, row);
    });
  }
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
  Seen(const RealLayer& layer, const RealTiles& tiles, const TilePart& part, float* memory, float* room) {
    if (sees_as_it_lies(layer, part)) {
      lines = layer.x + size(part.first_image * layer.shape.in_channels) * plane(layer) +
              size(part.first_row * layer.shape.out_w());
      apart = plane(layer);
      return;
    }
    lines = room;
    apart = size(tiles.width);
    if (layer.pool == 1) {
      sees_pixels(layer) ? pack_pixels(layer, part, apart, room)
                         : pack_patches(layer, tiles.planes, part, apart, memory, room);
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
inline void unpack(const RealLayer& layer, const TapPlanes& planes, const TilePart& part, size_t width,
                   const float* dseen, float* memory) {
  if (layer.pool > 1) return spread_averages(layer, part, width, dseen);
  if (sees_pixels(layer)) return spread_pixels(layer, part, width, dseen);
  const size_t image = size(layer.shape.in_channels) * plane(layer);
  if (part.first_row == 0 && !layer.accumulate) {
    std::memset(layer.dx + size(part.first_image) * image, 0, size(part.images) * image * sizeof(float));
  }
  add_patches(layer, planes, part, width, dseen, memory);
}

}  // namespace
}  // namespace ebnet
