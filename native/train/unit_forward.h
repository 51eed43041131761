// The unit's forward pass, sample by sample, once the gate has chosen.
//
// Scale, bias and PReLU follow the convolution (unit_sums.h) while a group's positions are in a near cache, then they
// are turned back to torch's order and the skip is added.
#pragma once
#include "train/unit_seen.h"
#include "train/unit_sums.h"
#include "train/unit_weights.h"

namespace ebnet {
namespace {

typedef std::int16_t Counts __attribute__((vector_size(kLanes * sizeof(std::int16_t))));

// Scale, bias and slope of one sample's group, [wide rows] each, zero behind the last.
inline void output_numbers(const UnitLayer& layer, const View& v, const UnitKept& kept, int b, int group, float* to) {
  const size_t first = size(group * v.rows), wide = size(v.wide_rows);
  const float* factor = layer.squeeze == nullptr ? nullptr : kept.factor + size(b * layer.shape.out_channels) + first;
  std::memset(to, 0, 3 * wide * sizeof(float));
  for (size_t o = 0; o < size(v.rows); ++o) {
    to[o] = layer.scale[first + o] * (factor == nullptr ? 1.0f : factor[o]);
    if (layer.bias != nullptr) to[wide + o] = layer.bias[first + o];
    to[2 * wide + o] = layer.slope == nullptr ? 1.0f : layer.slope[first + o];
  }
}

// A band of c [position][wide rows] to the place of its group, [position][rows]; as 16 bits where it counts.
inline void keep_conv(const UnitLayer& layer, const View& v, const float* out, int positions, size_t place,
                      void* conv) {
  const size_t rows = size(v.rows), wide = size(v.wide_rows);
  if (!layer.counts()) {
    float* to = static_cast<float*>(conv) + place;
    if (rows == wide) {
      std::memcpy(to, out, size(positions) * rows * sizeof(float));
      return;
    }
    for (int l = 0; l < positions; ++l) std::memcpy(to + size(l) * rows, out + size(l) * wide, rows * sizeof(float));
    return;
  }
  std::int16_t* to = static_cast<std::int16_t*>(conv) + place;
  for (int l = 0; l < positions; ++l) {
    for (size_t o = 0; o < rows; o += kLanes) {
      const Counts counts = __builtin_convertvector(load(out + size(l) * wide + o), Counts);
      if (rows - o < kLanes) {
        std::memcpy(to + size(l) * rows + o, &counts, (rows - o) * sizeof(std::int16_t));
      } else {
        std::memcpy(to + size(l) * rows + o, &counts, sizeof counts);
      }
    }
  }
}

// [position][wide rows] of c to scale c + bias, and through PReLU.
inline void activate(const View& v, const float* numbers, int positions, float* out) {
  const size_t wide = size(v.wide_rows);
  for (size_t o = 0; o < wide; o += kLanes) {
    const Vector scale = load(numbers + o), bias = load(numbers + wide + o), slope = load(numbers + 2 * wide + o);
    for (size_t l = 0; l < size(positions); ++l) {
      const Vector z = load(out + l * wide + o) * scale + bias;
      store(out + l * wide + o, z > Vector{} ? z : z * slope);
    }
  }
}

inline void add_to(const float* from, size_t count, float* to) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + load(from + i));
  for (; i < count; ++i) to[i] += from[i];
}

struct ForwardMemory {
  explicit ForwardMemory(const View& v, float* scratch) : carver(scratch) {
    places = reinterpret_cast<Place*>(carver.take(4 * size(v.positions())));
    runs = reinterpret_cast<Run*>(carver.take(6 * size(v.runs)));
    normals = carver.take(Normals::floats(v));
    packed = carver.take(packed_floats(v));
    panels = carver.take(size(v.groups * panels_of(v)) * panel_floats(v));
    numbers = carver.take(3 * size(v.wide_rows));
    out = carver.take(size(v.positions()) * size(v.wide_rows) + 2 * kLanes);
    hat = carver.take(hat_floats(v));
    seen = carver.take(size(v.chunk) * v.seen);
  }
  Carver carver;
  Place* places;
  Run* runs;
  float *normals, *packed, *panels, *numbers, *out, *hat, *seen;
};

size_t forward_floats(const UnitLayer& layer) {
  return ForwardMemory(view_of(layer.shape), nullptr).carver.taken();
}

// A piece's positions, those of all samples at one place of the map together; `out` is [sample][position][wide rows].
inline void place_outputs(const View& v, const Piece& piece, Place* places) {
  for (int y = piece.begin; y < piece.end; ++y) {
    for (int x = 0; x < v.out_w; ++x) {
      const int seen = ((y - piece.begin) * v.stride_h * v.columns + x * v.stride_w) * v.channels;
      const int out = (y - piece.begin) * v.out_w + x;
      for (int n = 0; n < piece.count; ++n) {
        *places++ = {n * static_cast<int>(v.seen) + seen, (n * piece.positions(v) + out) * v.wide_rows, y, x};
      }
    }
  }
}

// The runs that see the image from some of these positions; of a joined run the taps that do.
inline int seeing_runs(const View& v, const Extent& e, const float* panel, int lanes, Run* runs) {
  const auto sees = [](int first, int last, int stride, int pad, int tap, int in) {
    return last * stride - pad + tap >= 0 && first * stride - pad + tap < in;
  };
  int count = 0;
  for (int run = 0; run < v.runs; ++run, panel += v.run * lanes) {
    if (!sees(e.top, e.bottom, v.stride_h, v.top, kernel_row(v, run) * v.dilation_h, v.in_h)) continue;
    int first = kernel_column(v, run), last = v.joined ? v.right.count - 1 : first;
    while (first <= last && !sees(e.left, e.right, v.stride_w, v.left, first * v.dilation_w, v.in_w)) ++first;
    while (first <= last && !sees(e.left, e.right, v.stride_w, v.left, last * v.dilation_w, v.in_w)) --last;
    if (first > last) continue;
    const int skipped = v.joined ? first * v.channels : 0;
    runs[count++] = {run_place(v, run) + size(skipped), (last - first + 1) * v.channels, panel + skipped * lanes};
  }
  return count;
}

// One piece of one group.
inline void forward_piece(const UnitLayer& layer, const UnitForward& io, const UnitKept& kept, const View& v,
                          const Normal& normal, const Piece& piece, int group, const float* panels,
                          const ForwardMemory& memory) {
  const size_t in_plane = layer.in_plane(), map = size(v.map());
  const size_t x_sample = size(layer.shape.in_channels) * in_plane, wide = size(v.wide_rows);
  for (int n = 0; n < piece.count; ++n) {
    const float* x = io.x + size(piece.samples[n]) * x_sample + size(group * v.channels) * in_plane;
    see(v, normal, layer.binary_input, x, piece.first_line(v), piece.lines(v), memory.seen + size(n) * v.seen,
        memory.hat);
  }
  place_outputs(v, piece, memory.places);
  for (int p = 0; p < panels_of(v); ++p, panels += panel_floats(v)) {
    const int lanes = wide_panel(v, p) ? 2 * kLanes : kLanes;
    for_tiles(piece.count * piece.positions(v), [&](int rows, int position) {
      const Place* places = memory.places + position;
      const int count = seeing_runs(v, extent_of(places, rows, v.out_w), panels, lanes, memory.runs);
      run_sums(rows, wide_panel(v, p),
               {memory.runs, count, memory.seen, places, memory.out + p * 2 * kLanes, size(lanes)});
    });
  }
  const int positions = piece.positions(v);
  for (int n = 0; n < piece.count; ++n) {
    const size_t b = size(piece.samples[n]), begin = size(piece.begin) * size(v.out_w);
    float* out = memory.out + size(n * positions) * wide;
    if (io.conv != nullptr) {
      const size_t place = ((b * size(v.groups) + size(group)) * map + begin) * size(v.rows);
      keep_conv(layer, v, out, positions, place, io.conv);
    }
    output_numbers(layer, v, kept, piece.samples[n], group, memory.numbers);
    activate(v, memory.numbers, positions, out);
    const size_t place = (b * size(layer.shape.out_channels) + size(group * v.rows)) * map + begin;
    transpose(out, wide, positions, v.rows, io.y + place, map);
    const float* skip = !layer.skips ? nullptr : (io.skip == nullptr ? io.x : io.skip) + place;
    for (size_t o = 0; skip != nullptr && o < size(v.rows); ++o) {
      add_to(skip + o * map, size(positions), io.y + place + o * map);
    }
  }
}

void forward(const UnitLayer& layer, const UnitForward& io, const UnitKept& kept, const SamplesByExpert& samples,
             int first, int last, float* scratch) {
  const View v = view_of(layer.shape);
  const ForwardMemory memory(v, scratch);
  const Normals normals(layer, v, kept, memory.normals);
  const size_t of_group = size(panels_of(v)) * panel_floats(v);
  for_experts(layer.experts, samples, first, last, [&](int expert, int begin, int end) {
    for (int group = 0; group < v.groups; ++group) {
      pack_panels(layer, v, expert, group, memory.packed, memory.panels + size(group) * of_group);
    }
    for (int n = begin; n < end; n += v.chunk) {
      for (int group = 0; group < v.groups; ++group) {
        for (int row = 0; row < v.out_h; row += v.band) {
          const Piece piece = {samples.order + n, least(v.chunk, end - n), row, least(row + v.band, v.out_h)};
          forward_piece(layer, io, kept, v, normals[group], piece, group, memory.panels + size(group) * of_group,
                        memory);
        }
      }
    }
  });
}

}  // namespace
}  // namespace ebnet
