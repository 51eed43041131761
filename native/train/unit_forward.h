// The unit's forward pass, sample by sample, once the gate has chosen.
//
// Scale, bias and PReLU follow the convolution (unit_sums.h; of signs with signs unit_signs.h) while a group's positions are in a near cache, then they
// are turned back to torch's order and the skip is added.
#pragma once
#include "train/unit_seen.h"
#include "train/unit_signs.h"
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

// A word of signs costs a dozen operations where no instruction counts its bits, one for each of its channels as numbers.
constexpr int kFewestSigns = 16;

inline bool by_signs(const UnitLayer& layer, const View& v, SignSums sign_sums) {
  return layer.counts() && (sign_sums != run_sign_sums || v.channels >= kFewestSigns);
}

struct ForwardMemory {
  ForwardMemory(const UnitLayer& layer, const View& v, bool signs, float* scratch) : carver(scratch) {
    places = reinterpret_cast<Place*>(carver.take(4 * size(v.positions())));
    runs = reinterpret_cast<Run*>(carver.take(6 * size(v.runs)));
    normals = carver.take(Normals::floats(v));
    products = carver.take(Products::floats(v));
    taps = carver.take(TapPlaces::floats(v));
    order = reinterpret_cast<int*>(carver.take(signs ? 0 : panel_order_floats(v)));
    panels = carver.take(size(v.groups) * panels_floats(v, signs));
    numbers = carver.take(3 * size(v.wide_rows));
    out = carver.take(size(v.positions()) * size(v.wide_rows) + 2 * kLanes);
    hat = carver.take(signs ? sign_word_floats(v) : hat_floats(v));
    seen = carver.take(size(v.chunk) * (signs ? view_of_signs(v).seen : v.seen));
  }
  // Of one group.
  static size_t panels_floats(const View& v, bool signs) {
    return size(panels_of(v)) * (signs ? sign_panel_floats(v) : panel_floats(v));
  }
  Carver carver;
  Place* places;
  Run* runs;
  int* order;
  float *normals, *products, *taps, *panels, *numbers, *out, *hat, *seen;
};

size_t forward_floats(const UnitLayer& layer) {
  const View v = view_of(layer.shape);
  const size_t numbers = ForwardMemory(layer, v, false, nullptr).carver.taken();
  const size_t signs = layer.counts() ? ForwardMemory(layer, v, true, nullptr).carver.taken() : 0;
  return signs > numbers ? signs : numbers;
}

// A piece's positions, those of all samples at one place of the map together; `out` is [sample][position][wide rows].
// Rows count from the piece's first.
inline void place_outputs(const View& v, const Piece& piece, Place* places) {
  for (int y = 0; y < piece.end - piece.begin; ++y) {
    for (int x = 0; x < v.out_w; ++x) {
      const int seen = (y * v.stride_h * v.columns + x * v.stride_w) * v.channels, out = y * v.out_w + x;
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

// The forward pass of one thread's samples.
class Forward {
 public:
  Forward(const UnitLayer& layer, const UnitForward& io, const UnitKept& kept, SignSums sign_sums, float* scratch)
      : layer_(layer), io_(io), kept_(kept), sign_sums_(sign_sums), v_(view_of(layer.shape)),
        signs_(by_signs(layer, v_, sign_sums)), tiles_(signs_ ? view_of_signs(v_) : v_), memory_(layer, v_, signs_, scratch),
        normals_(layer, v_, kept, memory_.normals), products_(v_, memory_.products),
        end_(io.x + size(layer.batch * layer.shape.in_channels) * layer.in_plane()) {
    if (!signs_) panel_order(v_, TapPlaces(v_, memory_.taps), memory_.order);
  }

  void expert(int expert, const int* order, int count) {
    expert_ = expert;
    alone_ = count <= v_.chunk && v_.band == v_.out_h;
    for (int group = 0; signs_ && group < v_.groups; ++group) {
      pack_sign_panels(layer_, v_, expert, group, panels_of_group(group));
    }
    for (int n = 0; n < count; n += v_.chunk) {
      for (int group = 0; group < v_.groups; ++group) {
        for (int row = 0; row < v_.out_h; row += v_.band) {
          const Piece some = {order + n, least(v_.chunk, count - n), row, least(row + v_.band, v_.out_h)};
          piece(some, group, n == 0 && row == 0);
        }
      }
    }
  }

 private:
  float* panels_of_group(int group) const {
    return memory_.panels + size(group) * ForwardMemory::panels_floats(v_, signs_);
  }

  // Sums of signs find theirs packed. Others are packed when an expert's first piece asks for them; where that is its
  // only one, they take the same place one after another and stay in a near cache.
  const float* panel(int group, int p, bool first) {
    if (signs_) return panels_of_group(group) + size(p) * sign_panel_floats(v_);
    float* const panel = alone_ ? memory_.panels : panels_of_group(group) + size(p) * panel_floats(v_);
    if (first) pack_panel(layer_, v_, expert_, group, p, memory_.order, panel);
    return panel;
  }

  // `first_piece`: nothing of this expert's group has been computed yet.
  void piece(const Piece& piece, int group, bool first_piece) {
    const size_t x_sample = size(layer_.shape.in_channels) * layer_.in_plane();
    for (int n = 0; n < piece.count; ++n) {
      const float* x = io_.x + size(piece.samples[n]) * x_sample + size(group * v_.channels) * layer_.in_plane();
      const int first = piece.first_line(v_), lines = piece.lines(v_);
      float* seen = memory_.seen + size(n) * tiles_.seen;
      signs_ ? see_signs(v_, normals_[group], x, end_, first, lines, seen, memory_.hat)
             : see(v_, normals_[group], layer_.binary_input, x, first, lines, seen, memory_.hat);
    }
    // Most pieces are alike.
    if (placed_.count != piece.count || placed_.end != piece.end - piece.begin) {
      place_outputs(tiles_, piece, memory_.places);
      placed_ = {nullptr, piece.count, 0, piece.end - piece.begin};
    }
    for (int p = 0; p < panels_of(v_); ++p) {
      const float* const weights = panel(group, p, first_piece);
      const bool two = wide_panel(v_, p);
      for_tiles(piece.count * piece.positions(v_), [&](int rows, int position) {
        tile(piece, rows, memory_.places + position, two, weights, memory_.out + p * 2 * kLanes);
      });
    }
    for (int n = 0; n < piece.count; ++n) output(piece, n, group);
  }

  void tile(const Piece& piece, int rows, const Place* places, bool two, const float* panel, float* out) {
    const int lanes = two ? 2 * kLanes : kLanes;
    Extent extent = extent_of(places, rows, v_.out_w);
    extent.top += piece.begin;
    extent.bottom += piece.begin;
    const int count = seeing_runs(tiles_, extent, panel, lanes, memory_.runs);
    if (!signs_) {
      run_sums(rows, two, {memory_.runs, count, memory_.seen, places, out, size(lanes)});
      return;
    }
    sign_sums_(rows, two,
               {memory_.runs, count, memory_.seen, planes_of(v_), sign_plane(v_), sign_plane_weights(v_, lanes), places,
                products_.down + piece.begin, products_.right, out});
  }

  // From the sums of one sample of a piece to y.
  void output(const Piece& piece, int n, int group) {
    const size_t map = size(v_.map()), wide = size(v_.wide_rows);
    const size_t b = size(piece.samples[n]), begin = size(piece.begin) * size(v_.out_w);
    const int positions = piece.positions(v_);
    float* out = memory_.out + size(n * positions) * wide;
    if (io_.conv != nullptr) {
      const size_t place = ((b * size(v_.groups) + size(group)) * map + begin) * size(v_.rows);
      keep_conv(layer_, v_, out, positions, place, io_.conv);
    }
    output_numbers(layer_, v_, kept_, piece.samples[n], group, memory_.numbers);
    activate(v_, memory_.numbers, positions, out);
    const size_t place = (b * size(layer_.shape.out_channels) + size(group * v_.rows)) * map + begin;
    transpose(out, wide, positions, v_.rows, io_.y + place, map);
    const float* skip = !layer_.skips ? nullptr : (io_.skip == nullptr ? io_.x : io_.skip) + place;
    for (size_t o = 0; skip != nullptr && o < size(v_.rows); ++o) {
      add_to(skip + o * map, size(positions), io_.y + place + o * map);
    }
  }

  const UnitLayer& layer_;
  const UnitForward& io_;
  const UnitKept& kept_;
  const SignSums sign_sums_;
  const View v_;
  const bool signs_;
  const View tiles_;
  const ForwardMemory memory_;
  const Normals normals_;
  const Products products_;
  const float* const end_;
  Piece placed_ = {nullptr, 0, 0, 0};
  int expert_ = 0;
  bool alone_ = false;  // all of the expert's samples are one piece
};

void forward(const UnitLayer& layer, const UnitForward& io, const UnitKept& kept, const SamplesByExpert& samples,
             int first, int last, SignSums sign_sums, float* scratch) {
  Forward pass(layer, io, kept, sign_sums, scratch);
  for_experts(layer.experts, samples, first, last,
              [&](int expert, int begin, int end) { pass.expert(expert, samples.order + begin, end - begin); });
}

}  // namespace
}  // namespace ebnet
