// The unit's backward pass up to the barrier, sample by sample. Per sample, with d' the derivative of PReLU's side:
//
//   dz = dy d',  dslope = sum of dy z where z <= 0,  dbias = sum of dz,  dscale f = d f scale = sum of dz c
//   dc = scale f dz
//   G_b = wgrad(seen_b, dc_b) * M_e: summed for theta_e, dotted with every theta_i for the gate       (unit_gradient.h)
//   dn  = dgrad(dc, weights) * the estimator at n                                                (unit_input.h)
//
// The means that gate and scaling see add the same number to all positions of dn; it enters after the barrier. For the
// batch norm's gradient the sums of dn and dn h are taken here.
#pragma once
#include "train/unit_forward.h"
#include "train/unit_gradient.h"
#include "train/unit_input.h"
#include "train/unit_moments.h"

namespace ebnet {
namespace {

inline Vector conv_at(const UnitLayer& layer, const void* conv, size_t place, size_t count) {
  if (!layer.counts()) {
    const float* from = static_cast<const float*>(conv) + place;
    return count < kLanes ? load_some(from, count) : load(from);
  }
  const std::int16_t* from = static_cast<const std::int16_t*>(conv) + place;
  Counts counts = {};
  if (count < kLanes) {
    std::memcpy(&counts, from, count * sizeof(std::int16_t));
  } else {
    std::memcpy(&counts, from, sizeof counts);
  }
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
  for_channels(count, v.rows, [&](size_t first, size_t period, int at) {
    const Vector scale = load(numbers + at), bias = load(numbers + each + at), slope = load(numbers + 2 * each + at);
    Vector of_slope = {}, of_scale = {}, of_bias = {};
    for (size_t i = first; i < count; i += period) {
      const Vector d = load_some(dc + i, count - i), c = conv_at(layer, conv, conv_place + i, count - i);
      const Vector z = c * scale + bias, dz = z > Vector{} ? d : d * slope;
      of_slope += z > Vector{} ? Vector{} : d * z;
      of_scale += dz * c;
      of_bias += dz;
      store_some(dc + i, dz * scale, count - i);
    }
    add_at(sums.slope + at, of_slope);
    add_at(sums.scale + at, of_scale);
    add_at(sums.bias + at, of_bias);
  });
}

// [position][row] into the middle of [line][column][row] with its zeros around.
inline void lay_out(const View& v, const float* tight, int lines, float* dc) {
  const size_t row = size(v.out_w * v.rows), line = size(v.dc_columns() * v.rows);
  dc += size(v.back_h) * line + size(v.back_w * v.rows);
  for (int y = 0; y < lines; ++y) std::memcpy(dc + size(y) * line, tight + size(y) * row, row * sizeof(float));
}

struct BackwardMemory {
  explicit BackwardMemory(const View& v, const UnitLayer& layer, float* scratch) : carver(scratch) {
    const size_t of_rows = Repeated::floats(v.rows), of_channels = Repeated::floats(v.channels), chunk = size(v.chunk);
    places = reinterpret_cast<Place*>(carver.take(4 * chunk * size(v.lines) * size(v.in_w)));
    taps = reinterpret_cast<Tap*>(carver.take(6 * size(taps_of(v))));
    runs = reinterpret_cast<Run*>(carver.take(6 * size(taps_of(v))));
    normals = carver.take(Normals::floats(v));
    packed = carver.take(packed_floats(v));
    strips = carver.take(size(v.groups * strips_of(v)) * strip_floats(v));
    total = carver.take(size(v.groups) * group_floats(v));
    mask = carver.take(layer.binary_weights ? size(v.groups) * group_floats(v) : 0);
    numbers = carver.take(3 * size(v.wide_rows));
    repeated = carver.take(3 * of_rows);
    sums = carver.take(chunk * (3 * of_rows + 2 * of_channels));
    scores = carver.take(chunk * size(layer.experts) * kLanes);
    tight = carver.take(size(v.band * v.out_w) * size(v.rows) + kLanes);
    dc = carver.take(chunk * v.dc + kLanes);
    seen = carver.take(chunk * v.seen);
    hat = carver.take(chunk * hat_floats(v));
    dseen = carver.take(chunk * v.seen + kLanes);
  }
  Carver carver;
  Place* places;
  Tap* taps;
  Run* runs;
  float *normals, *packed, *strips, *total, *mask, *numbers, *repeated, *sums, *scores;
  float *tight, *dc, *seen, *hat, *dseen;
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
    // Image outside of all that is seen, or between what bands see, has no gradient.
    const int reach = (v_.down.count - 1) * v_.dilation_h, last = (v_.out_h - 1) * v_.stride_h - v_.top + reach;
    clear_ = v_.top < 0 || used_of(v_) < v_.in_w || last < v_.in_h - 1 || v_.stride_h > reach + 1;
  }

  void expert(int expert, const int* order, int count, float* dtheta) {
    const size_t of_group = group_floats(v_);
    masked_ = false;
    expert_ = expert;
    for (int group = 0; group < v_.groups; ++group) {
      for_tiles(v_.rows, [&](int rows, int row) { pack({group, row, rows}); });
    }
    for (int group = 0; masked_ && group < v_.groups; ++group) {
      for_tiles(v_.rows, [&](int rows, int row) { pack_mask({group, row, rows}); });
    }
    for (int n = 0; n < count; n += v_.chunk) {
      fresh_ = n == 0;
      samples(order + n, least(v_.chunk, count - n));
    }
    for (int group = 0; group < v_.groups; ++group) {
      for_tiles(v_.rows, [&](int count_of, int row) {
        const RowsOf rows = {group, row, count_of};
        float* const to = dtheta + weights_of(layer_, v_, 0, group, row);
        float* const packed = packed_already(v_) ? to : memory_.packed;
        from_tiles(v_, rows, 1, 0, memory_.total + size(group) * of_group, packed);
        if (packed != to) unpack_rows(v_, rows, packed, to);
      });
    }
  }

 private:
  // Some rows of the expert's latent weights; copied from the directions where they stand for the gate.
  const float* latent(const RowsOf& rows) {
    if (layer_.gate == nullptr || packed_already(v_)) return packed_rows(layer_, v_, expert_, rows, memory_.packed);
    const size_t place = size(rows.group) * group_floats(v_) * size(layer_.experts);
    from_tiles(v_, rows, layer_.experts, expert_, directions_ + place, memory_.packed);
    return memory_.packed;
  }

  // In the order of the input gradient, their signs where weights are binary.
  void pack(const RowsOf& rows) {
    const float* packed = latent(rows);
    if (layer_.binary_weights) {
      const size_t count = size(rows.count) * v_.width;
      masked_ |= clips(packed, count);
      if (packed != memory_.packed) std::memcpy(memory_.packed, packed, count * sizeof(float));
      take_signs(v_, rows, memory_.packed);
      packed = memory_.packed;
    }
    pack_strips(v_, rows, packed, strips_of_group(rows.group));
  }

  void pack_mask(const RowsOf& rows) {
    float* const tiles = memory_.mask + size(rows.group) * group_floats(v_);
    to_tiles(v_, rows, 1, 0, latent(rows), tiles);
    clip_derivative(size(rows.count) * v_.width, tiles + size(rows.row) * v_.width);
  }

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
      std::memset(memory_.dc, 0, size(count) * v_.dc * sizeof(float));
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
      float* dots = sums_.dots + size(order[n]) * experts;
      for (size_t i = 0; i < experts; ++i) dots[i] = sum_of(scores[size(n) * experts + i]);
      if (!layer_.binary_weights) dots[expert_] = own_dot(order[n]);
    }
  }

  // <G_b, theta_e> = <dc, c> where the weights are used as they are: the sums of dz c know it already.
  float own_dot(int sample) const {
    const size_t outs = size(layer_.shape.out_channels);
    const float* of_scale = sums_.scale + size(sample) * outs;
    const float* factor = layer_.squeeze == nullptr ? nullptr : kept_.factor + size(sample) * outs;
    float dot = 0.0f;
    for (size_t o = 0; o < outs; ++o) dot += of_scale[o] * layer_.scale[o] * (factor == nullptr ? 1.0f : factor[o]);
    return dot;
  }

  float* strips_of_group(int group) const { return memory_.strips + size(group * strips_of(v_)) * strip_floats(v_); }

  float* dx_of(int sample, int group) const {
    return io_.dx + size(sample * layer_.shape.in_channels + group * v_.channels) * layer_.in_plane();
  }

  void piece(const Piece& piece, int group) {
    const int positions = piece.positions(v_), first = piece.first_line(v_), lines = piece.lines(v_);
    const size_t map = size(v_.map()), begin = size(piece.begin) * size(v_.out_w), rows = size(v_.rows);
    const size_t of_group = group_floats(v_), experts = layer_.gate == nullptr ? 0 : size(layer_.experts);
    const Normal normal = normals_[group];
    for (int n = 0; n < piece.count; ++n) {
      const int b = piece.samples[n];
      const size_t in = size(b * layer_.shape.in_channels + group * v_.channels) * layer_.in_plane();
      see(v_, normal, layer_.binary_input, io_.x + in, first, lines, memory_.seen + size(n) * v_.seen,
          memory_.hat + size(n) * hat_floats(v_));
      output_numbers(layer_, v_, kept_, b, group, memory_.numbers);
      for (int i = 0; i < 3; ++i) {
        Repeated::fill(memory_.numbers + i * v_.wide_rows, 0.0f, v_.rows, memory_.repeated + i * (v_.rows + kLanes));
      }
      const size_t out = size(b * layer_.shape.out_channels + group * v_.rows) * map + begin;
      const size_t conv = (size(b * v_.groups + group) * map + begin) * rows;
      const bool direct = v_.back_h == 0 && v_.back_w == 0;
      float *dc = memory_.dc + size(n) * v_.dc, *tight = direct ? dc : memory_.tight;
      output_gradient(layer_, v_, io_.dy + out, positions, conv, io_.conv, memory_.repeated,
                      {sum(n, 0), sum(n, 1), sum(n, 2)}, tight);
      if (!direct) lay_out(v_, tight, piece.end - piece.begin, dc);
    }
    const size_t dc_line = size(v_.dc_columns()) * rows;
    GradientTask t = {};
    t.dc = memory_.dc + size(v_.back_h) * dc_line + size(v_.back_w) * rows;
    t.seen = memory_.seen;
    t.directions = experts == 0 ? nullptr : directions_ + size(group) * of_group * experts;
    t.experts = static_cast<int>(experts);
    t.known = layer_.binary_weights ? -1 : expert_;
    t.mask = masked_ ? memory_.mask + size(group) * of_group : nullptr;
    t.total = memory_.total + size(group) * of_group;
    t.fresh = fresh_ && piece.begin == 0;
    t.scores = reinterpret_cast<Vector*>(memory_.scores);
    weight_gradient(v_, piece, t);

    // Lines that no later band reaches are complete.
    const bool last = piece.end == v_.out_h;
    const Rows image = image_rows(v_, first, last ? lines : least(lines, (piece.end - piece.begin) * v_.stride_h));
    input_gradient(v_, piece, image, memory_.dc, strips_of_group(group), memory_.places, memory_.taps, memory_.runs,
                   memory_.dseen);
    for (int n = 0; n < piece.count; ++n) {
      emit(layer_, v_, normal, image, memory_.hat + size(n) * hat_floats(v_), memory_.dseen + size(n) * v_.seen,
           sum(n, 3), sum(n, 4), dx_of(piece.samples[n], group));
    }
    if (last) return;
    // The last output rows move above the next band, which reaches back to them.
    const size_t kept = size(v_.back_h) * dc_line;
    std::memmove(memory_.dc, memory_.dc + size(piece.end - piece.begin) * dc_line, kept * sizeof(float));
    std::memset(memory_.dc + kept, 0, (v_.dc - kept) * sizeof(float));
  }

  const UnitLayer& layer_;
  const UnitBackward& io_;
  const UnitKept& kept_;
  const UnitSums& sums_;
  const float* directions_;
  const View v_;
  const BackwardMemory memory_;
  const Normals normals_;
  int expert_ = 0;
  bool clear_ = false, masked_ = false, fresh_ = false;
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
  for (size_t p = size(first) * channels, c = 0; p < size(last) * channels; ++p, c = c + 1 == channels ? 0 : c + 1) {
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
