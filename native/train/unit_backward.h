// The unit's backward pass up to the barrier, sample by sample. Per sample, with d' the derivative of PReLU's side:
//
//   dz = dy d',  dslope = sum of dy z where z <= 0,  dbias = sum of dz,  dscale f = d f scale = sum of dz c
//   dc = scale f dz
//   G_b = wgrad(seen_b, dc_b) * M_e: summed for theta_e, dotted with every theta_i for the gate       (unit_gradient.h)
//   dn  = dgrad(dc, weights) * the estimator at n
//
// The means that gate and scaling see add the same number to all positions of dn; it enters after the barrier. For the batch
// norm's gradient the sums of dn and dn h are taken here.
#pragma once
#include "train/unit_forward.h"
#include "train/unit_gradient.h"
#include "train/unit_moments.h"

namespace ebnet {
namespace {

inline Vector conv_at(const UnitLayer& layer, const void* conv, size_t place, size_t count) {
  if (!layer.counts()) {
    const float* from = static_cast<const float*>(conv) + place;
    return count < kLanes ? load_some(from, count) : load(from);
  }
  Counts counts = {};
  std::memcpy(&counts, static_cast<const std::int16_t*>(conv) + place,
              (count < kLanes ? count : size_t{kLanes}) * sizeof(std::int16_t));
  return __builtin_convertvector(counts, Vector);
}

// One sample's band of one group: dy [row][position] to dc [position][row]; the sums grow by channel, repeated.
struct OutputSums {
  float *slope, *scale, *bias;
};

inline void output_gradient(const UnitLayer& layer, const View& v, const float* dy, int positions, size_t conv_place,
                            const void* conv, const float* numbers, const OutputSums& sums, float* dc) {
  transpose(dy, size(v.map()), v.rows, positions, dc, size(v.rows));
  const size_t each = Repeated::floats(v.rows), count = size(positions) * size(v.rows);
  const float *scales = numbers, *biases = numbers + each, *slopes = numbers + 2 * each;
  const int step = Repeated::step(v.rows);
  int at = 0;
  for (size_t i = 0; i < count; i += kLanes, at = next_channel(at, step, v.rows)) {
    const size_t some = count - i;
    const Vector d = some < kLanes ? load_some(dc + i, some) : load(dc + i);
    const Vector c = conv_at(layer, conv, conv_place + i, some), scale = load(scales + at);
    const Vector z = c * scale + load(biases + at);
    const Vector dz = z > Vector{} ? d : d * load(slopes + at);
    store(sums.slope + at, load(sums.slope + at) + (z > Vector{} ? Vector{} : d * z));
    store(sums.scale + at, load(sums.scale + at) + dz * c);
    store(sums.bias + at, load(sums.bias + at) + dz);
    store(dc + i, dz * scale);
  }
}

struct BackwardTask {
  const float* dc;  // at the tile's first position
  int rows;
  const float* weights;  // [output channel][vectors]
  float* dseen;
  const int* places;
};

template <int kRows, int kVectors>
struct BackwardTile {
  static void run(const BackwardTask& t) {
    Vector sums[kRows][kVectors] = {};
    const float* weights = t.weights;
    const float* at[kRows];
    for (int r = 0; r < kRows; ++r) at[r] = t.dc + r * t.rows;
    for (int o = 0; o < t.rows; ++o, weights += kVectors * kLanes) {
      Vector w[kVectors];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) w[i] = load(weights + i * kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const Vector a = splat(at[r][o]);
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) sums[r][i] += a * w[i];
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) {
        float* to = t.dseen + t.places[r] + i * kLanes;
        store(to, load(to) + sums[r][i]);
      }
    }
  }
};

// What a piece adds to the transposed input gradient.
inline void input_gradient(const View& v, const Piece& piece, const float* dc, const float* strips, const int* places,
                           float* dseen) {
  for (int run = 0; run < v.runs; ++run) {
    for_vectors(v.padded, [&](int lane, bool two) {
      for_positions(v, piece, [&](int rows, int position, int first, int last) {
        if (!sees(v, run, first, last)) return;
        const BackwardTask t = {dc + size(position * v.rows), v.rows, strips, dseen + run_place(v, run) + size(lane),
                                places + position};
        two ? run_tile<BackwardTile, 2>(rows, t) : run_tile<BackwardTile, 1>(rows, t);
      });
      strips += size(v.rows) * (two ? 2 * kLanes : kLanes);
    });
  }
}

inline Vector through(Estimator estimator, Vector d, Vector n) {
  if (estimator == Estimator::one) return d;
  const Vector magnitude = n < Vector{} ? -n : n, one = splat(1.0f);
  if (estimator == Estimator::polynomial) d = d * (splat(2.0f) - splat(2.0f) * magnitude);
  return magnitude <= one ? d : Vector{};
}

// Lines [first, first + lines) of the transposed gradient through the estimator and back to torch's order.
inline void emit(const UnitLayer& layer, const View& v, const Normal& normal, int first, int lines, const float* hat,
                 float* dseen, float* raw, float* raw_hat, float* dx) {
  const size_t plane = layer.in_plane(), channels = size(v.channels), line = size(v.columns) * channels;
  const size_t left = size(left_of(v)) * channels, used = size(used_of(v)) * channels;
  const int step = Repeated::step(v.channels);
  for (int row = first; row < first + lines; ++row, hat += line, dseen += line) {
    if (row < 0 || row >= v.in_h) continue;
    int at = 0;
    for (size_t i = left; i < left + used; i += kLanes, at = next_channel(at, step, v.channels)) {
      const size_t some = left + used - i;
      const Vector h = some < kLanes ? load_some(hat + i, some) : load(hat + i);
      const Vector d = some < kLanes ? load_some(dseen + i, some) : load(dseen + i);
      const Vector dn = through(layer.input_estimator, d, normal_of(normal, at, h));
      store(raw + at, load(raw + at) + dn);
      store(raw_hat + at, load(raw_hat + at) + dn * h);
      some < kLanes ? store_some(dseen + i, dn, some) : store(dseen + i, dn);
    }
    transpose(dseen + left, channels, used_of(v), v.channels, dx + size(row) * size(v.in_w) + first_column(v), plane);
  }
}

struct BackwardMemory {
  explicit BackwardMemory(const View& v, const UnitLayer& layer, float* scratch) : carver(scratch) {
    const size_t of_rows = Repeated::floats(v.rows), of_channels = Repeated::floats(v.channels), chunk = size(v.chunk);
    places = reinterpret_cast<int*>(carver.take(size(v.positions())));
    normals = carver.take(Normals::floats(v));
    packed = carver.take(group_floats(v));
    strips = carver.take(size(v.groups) * group_floats(v));
    total = carver.take(size(v.groups) * group_floats(v));
    mask = carver.take(layer.binary_weights ? size(v.groups) * group_floats(v) : 0);
    numbers = carver.take(3 * size(v.wide_rows));
    repeated = carver.take(3 * of_rows);
    sums = carver.take(chunk * (3 * of_rows + 2 * of_channels));
    scores = carver.take(chunk * size(layer.experts) * kLanes);
    dc = carver.take(size(v.positions()) * size(v.rows) + kLanes);
    seen = carver.take(chunk * v.seen);
    hat = carver.take(chunk * v.seen);
    dseen = carver.take(chunk * v.seen);
  }
  Carver carver;
  int* places;
  float *normals, *packed, *strips, *total, *mask, *numbers, *repeated, *sums, *scores, *dc, *seen, *hat, *dseen;
};

size_t backward_floats(const UnitLayer& layer) {
  return BackwardMemory(view_of(layer.shape), layer, nullptr).carver.taken();
}

// The backward pass of one thread's samples.
class Backward {
 public:
  Backward(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const UnitSums& sums,
           const float* directions, float* scratch)
      : layer_(layer), io_(io), kept_(kept), sums_(sums), directions_(directions), v_(view_of(layer.shape)),
        memory_(v_, layer, scratch), normals_(layer, v_, kept, memory_.normals) {
    place_positions(v_, memory_.places);
    // Image that no position sees has no gradient.
    const bool gaps = v_.stride_h > 1 || v_.stride_w > 1 || v_.dilation_h > 1 || v_.dilation_w > 1;
    const int last = (v_.out_h - 1) * v_.stride_h - v_.top + (v_.down.count - 1) * v_.dilation_h;
    clear_ = gaps || v_.top < 0 || used_of(v_) < v_.in_w || last < v_.in_h - 1;
  }

  void expert(int expert, const int* order, int count, float* dtheta) {
    const size_t of_group = group_floats(v_);
    masked_ = false;
    for (int group = 0; group < v_.groups; ++group) {
      pack_rows(layer_, v_, expert, group, false, memory_.packed);
      float* mask = memory_.mask + size(group) * of_group;
      if (layer_.binary_weights) {
        tile_rows<false>(v_, 1, 0, memory_.packed, memory_.total);
        masked_ |= clip_mask(memory_.total, of_group, mask);
        pack_rows(layer_, v_, expert, group, true, memory_.packed);
      }
      pack_strips(v_, memory_.packed, memory_.strips + size(group) * of_group);
    }
    std::memset(memory_.total, 0, size(v_.groups) * of_group * sizeof(float));
    for (int n = 0; n < count; n += v_.chunk) samples(order + n, least(v_.chunk, count - n));
    for (int group = 0; group < v_.groups; ++group) {
      tile_rows<true>(v_, 1, 0, memory_.packed, memory_.total + size(group) * of_group);
      for (int row = 0; row < v_.rows; ++row) {
        unpack_row(v_, memory_.packed + size(row) * v_.width, dtheta + weights_of(layer_, v_, 0, group, row));
      }
    }
  }

 private:
  float* sum(int n, int which) const {
    const size_t of_rows = Repeated::floats(v_.rows), of_channels = Repeated::floats(v_.channels);
    float* of_sample = memory_.sums + size(n) * (3 * of_rows + 2 * of_channels);
    return which < 3 ? of_sample + size(which) * of_rows : of_sample + 3 * of_rows + size(which - 3) * of_channels;
  }

  void samples(const int* order, int count) {
    const size_t experts = size(layer_.experts);
    std::memset(memory_.scores, 0, size(count) * experts * sizeof(Vector));
    for (int group = 0; group < v_.groups; ++group) {
      std::memset(sum(0, 0), 0, size(count) * static_cast<size_t>(sum(1, 0) - sum(0, 0)) * sizeof(float));
      std::memset(memory_.dseen, 0, size(count) * v_.seen * sizeof(float));
      for (int n = 0; clear_ && n < count; ++n) {
        std::memset(dx_of(order[n], group), 0, size(v_.channels) * layer_.in_plane() * sizeof(float));
      }
      for (int row = 0; row < v_.out_h; row += v_.band) {
        piece({order, count, row, least(row + v_.band, v_.out_h)}, group);
      }
      for (int n = 0; n < count; ++n) {
        const size_t rows = size(order[n] * layer_.shape.out_channels + group * v_.rows);
        const size_t channels = size(order[n] * layer_.shape.in_channels + group * v_.channels);
        Repeated::fold(sum(n, 0), v_.rows, sums_.slope + rows);
        Repeated::fold(sum(n, 1), v_.rows, sums_.scale + rows);
        Repeated::fold(sum(n, 2), v_.rows, sums_.bias + rows);
        Repeated::fold(sum(n, 3), v_.channels, sums_.raw + channels);
        Repeated::fold(sum(n, 4), v_.channels, sums_.raw_hat + channels);
      }
    }
    const Vector* scores = reinterpret_cast<const Vector*>(memory_.scores);
    for (int n = 0; layer_.gate != nullptr && n < count; ++n) {
      for (size_t i = 0; i < experts; ++i) {
        sums_.dots[size(order[n]) * experts + i] = sum_of(scores[size(n) * experts + i]);
      }
    }
  }

  float* dx_of(int sample, int group) const {
    return io_.dx + size(sample * layer_.shape.in_channels + group * v_.channels) * layer_.in_plane();
  }

  void piece(const Piece& piece, int group) {
    const int positions = piece.positions(v_), first = piece.first_line(v_), lines = piece.lines(v_);
    const size_t map = size(v_.map()), begin = size(piece.begin) * size(v_.out_w), rows = size(v_.rows);
    const Normal normal = normals_[group];
    for (int n = 0; n < piece.count; ++n) {
      const int b = piece.samples[n];
      const size_t in = size(b * layer_.shape.in_channels + group * v_.channels) * layer_.in_plane();
      see(v_, normal, layer_.binary_input, io_.x + in, first, lines, memory_.seen + size(n) * v_.seen,
          memory_.hat + size(n) * v_.seen);
      output_numbers(layer_, v_, kept_, b, group, memory_.numbers);
      for (int i = 0; i < 3; ++i) {
        Repeated::fill(memory_.numbers + i * v_.wide_rows, 0.0f, v_.rows, memory_.repeated + i * (v_.rows + kLanes));
      }
      const size_t out = size(b * layer_.shape.out_channels + group * v_.rows) * map + begin;
      const size_t conv = (size(b * v_.groups + group) * map + begin) * rows;
      output_gradient(layer_, v_, io_.dy + out, positions, conv, io_.conv, memory_.repeated,
                      {sum(n, 0), sum(n, 1), sum(n, 2)}, memory_.dc + size(n * positions) * rows);
    }
    const size_t of_group = group_floats(v_), experts = layer_.gate == nullptr ? 0 : size(layer_.experts);
    GradientTask t = {};
    t.dc = memory_.dc;
    t.seen = memory_.seen;
    t.directions = experts == 0 ? nullptr : directions_ + size(group) * of_group * experts;
    t.experts = static_cast<int>(experts);
    t.mask = masked_ ? memory_.mask + size(group) * of_group : nullptr;
    t.total = memory_.total + size(group) * of_group;
    t.scores = reinterpret_cast<Vector*>(memory_.scores);
    weight_gradient(v_, piece, t);
    input_gradient(v_, piece, memory_.dc, memory_.strips + size(group) * of_group, memory_.places, memory_.dseen);
    // Lines that no later band sees are complete; the others move up to where the next band begins.
    const size_t line = size(v_.columns) * size(v_.channels);
    const bool final = piece.end == v_.out_h;
    const int done = final ? lines : least(lines, (piece.end - piece.begin) * v_.stride_h);
    for (int n = 0; n < piece.count; ++n) {
      float* dseen = memory_.dseen + size(n) * v_.seen;
      emit(layer_, v_, normal, first, done, memory_.hat + size(n) * v_.seen, dseen, sum(n, 3), sum(n, 4),
           dx_of(piece.samples[n], group));
      if (final) continue;
      std::memmove(dseen, dseen + size(done) * line, size(lines - done) * line * sizeof(float));
      std::memset(dseen + size(lines - done) * line, 0, size(done) * line * sizeof(float));
    }
  }

  const UnitLayer& layer_;
  const UnitBackward& io_;
  const UnitKept& kept_;
  const UnitSums& sums_;
  const float* directions_;
  const View v_;
  const BackwardMemory memory_;
  const Normals normals_;
  bool clear_ = false, masked_ = false;
};

void backward(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const UnitSums& sums,
              const SamplesByExpert& samples, int first, int last, const float* directions, float* shared,
              float* scratch) {
  Backward pass(layer, io, kept, sums, directions, scratch);
  const View v = view_of(layer.shape);
  for_experts(layer.experts, samples, first, last, [&](int expert, int begin, int end) {
    float* dtheta = begin == first && shared != nullptr ? shared : io.dtheta + weights_of(layer, v, expert, 0, 0);
    pass.expert(expert, samples.order + begin, end - begin, dtheta);
  });
}

void finish(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const float* slope, const float* tilt,
            const float* offset, int first, int last) {
  const size_t channels = size(layer.shape.in_channels), plane = layer.in_plane();
  const bool norm = layer.gamma != nullptr, adds = layer.skips && io.skip_is_x;
  for (size_t p = size(first) * channels; p < size(last) * channels; ++p) {
    const size_t c = p % channels;
    const float k = slope[c], t = tilt[c], o = offset[p], mean = norm ? kept.mean[c] : 0.0f;
    float* dx = io.dx + p * plane;
    const float *x = io.x + p * plane, *dy = io.dy + p * plane;
    size_t i = 0;
    for (; i + kLanes <= plane; i += kLanes) {
      Vector d = load(dx + i) * splat(k) + ((load(x + i) - splat(mean)) * splat(t) + splat(o));
      if (adds) d += load(dy + i);
      store(dx + i, d);
    }
    for (; i < plane; ++i) dx[i] = dx[i] * k + ((x[i] - mean) * t + o) + (adds ? dy[i] : 0.0f);
  }
}

}  // namespace
}  // namespace ebnet
