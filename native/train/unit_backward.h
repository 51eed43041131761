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
#include "train/unit_output.h"

namespace ebnet {
namespace {

struct BackwardMemory {
  explicit BackwardMemory(const View& v, const UnitLayer& layer, float* scratch) : carver(scratch) {
    const size_t of_rows = Repeated::floats(v.rows), of_channels = Repeated::floats(v.channels), chunk = size(v.chunk);
    places = reinterpret_cast<Place*>(carver.take(4 * chunk * size(v.lines) * size(v.in_w)));
    taps = reinterpret_cast<Tap*>(carver.take(6 * size(taps_of(v))));
    runs = reinterpret_cast<Run*>(carver.take(6 * size(taps_of(v))));
    normals = carver.take(Normals::floats(v));
    packed = carver.take(packed_floats(v));
    places_of_taps = carver.take(TapPlaces::floats(v));
    segments = reinterpret_cast<Segment*>(carver.take(6 * size(layer.experts)));
    const bool rows_first = batch_in_one_piece(layer, v);
    strips = carver.take(size(rows_first ? 1 : v.groups * strips_of(v)) * strip_floats(v));
    const size_t of_rows_first = size(layer.experts * kTileRows) * v.width;
    total = carver.take(rows_first ? of_rows_first : size(v.groups) * group_floats(v));
    directions = carver.take(rows_first && layer.gate != nullptr ? of_rows_first : 0);
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
  Segment* segments;
  float *normals, *packed, *places_of_taps, *strips, *total, *directions, *numbers, *repeated, *sums, *scores;
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
        rows_first_(batch_in_one_piece(layer, v_)), memory_(v_, layer, scratch),
        normals_(layer, v_, kept, memory_.normals), taps_(v_, memory_.places_of_taps) {
    // Image outside of all that is seen, or between what bands see, has no gradient.
    const int reach = (v_.down.count - 1) * v_.dilation_h, last = (v_.out_h - 1) * v_.stride_h - v_.top + reach;
    clear_ = v_.top < 0 || used_of(v_) < v_.in_w || last < v_.in_h - 1 || v_.stride_h > reach + 1;
  }

  // The weight gradient of the expert of order[first] goes to `shared` if given.
  void samples(const SamplesByExpert& samples, int first, int last, float* shared) {
    segment_count_ = 0;
    for_experts(layer_.experts, samples, first, last, [&](int expert, int begin, int end) {
      float* own = io_.dtheta + weights_of(layer_, v_, expert, 0, 0);
      Segment& s = memory_.segments[segment_count_++];
      const bool alone = end - begin <= v_.chunk && v_.band == v_.out_h;
      s = {expert, begin - first, end - begin, true, alone, begin == first && shared != nullptr ? shared : own};
      if (rows_first_) return;
      s.begin = 0;
      for (int n = begin; n < end; n += v_.chunk, s.fresh = false) {
        s.count = least(v_.chunk, end - n);
        chunk(samples.order + n, s.count);
      }
      for (int group = 0; group < v_.groups; ++group) {
        for_tiles(v_.rows, [&](int count, int row) { unpack(s, {group, row, count}, total_at(group, row)); });
      }
      segment_count_ = 0;
    });
    if (rows_first_) chunk(samples.order + first, last - first);
  }

 private:
  // The gradient of some rows from their tiles to where it belongs.
  void unpack(const Segment& s, const RowsOf& rows, const float* tiles) {
    const size_t place = weights_of(layer_, v_, 0, rows.group, rows.row);
    float* const to = s.dtheta + place;
    float* const packed = packed_already(v_) ? to : memory_.packed;
    from_tiles(v_, rows.count, 1, 0, tiles, packed);
    if (packed != to) unpack_rows(v_, taps_, rows, packed, to);
    if (!layer_.binary_weights || layer_.gate != nullptr) return;  // or masked before it was scored
    const size_t each = size(v_.channels * v_.down.all * v_.right.all);
    through_clip(layer_.theta + weights_of(layer_, v_, s.expert, 0, 0) + place, size(rows.count) * each, to);
  }

  float* total_at(int group, int row) const { return memory_.total + size(group * v_.rows + row) * v_.width; }

  // An expert's weights in the order of the input gradient, packed for its first piece. Where that is its only one,
  // they take the same place one after another and stay in a near cache.
  const float* strip(const Segment& s, const Piece& piece, int group, int p) {
    float* const strip = memory_.strips + (s.alone ? 0 : size(group * strips_of(v_) + p) * strip_floats(v_));
    if (s.fresh && piece.begin == 0) pack_strip(layer_, v_, taps_, s.expert, group, p, strip);
    return strip;
  }

  const float* directions_at(int group, int row) const {
    return directions_ + size(group * v_.rows + row) * v_.width * size(layer_.experts);
  }

  // The weight gradients of a piece.
  void gradients(const Piece& piece, int group) {
    const bool gate = layer_.gate != nullptr;
    GradientTask t = {};
    t.dc = memory_.dc + size((v_.back_h * v_.dc_columns() + v_.back_w) * v_.rows);
    t.seen = memory_.seen;
    t.experts = gate ? layer_.experts : 0;
    t.scores = reinterpret_cast<Vector*>(memory_.scores);
    const auto add = [&](int count, int row) {
      weight_gradient(v_, piece, row, count, t, layer_.binary_weights, segments(), segment_count_, size(count) * v_.width);
    };
    if (!rows_first_) {
      for_tiles(v_.rows, [&](int count, int row) {
        t.directions = gate ? directions_at(group, row) : nullptr;
        t.total = total_at(group, row);
        add(count, row);
      });
      return;
    }
    for_tiles(v_.rows, [&](int count, int row) {
      const RowsOf rows = {group, row, count};
      for (int e = 0; gate && e < layer_.experts; ++e) {
        const float* packed = packed_rows(layer_, v_, taps_, e, rows, memory_.packed);
        to_tiles(v_, count, layer_.experts, e, packed, memory_.directions);
      }
      t.directions = gate ? memory_.directions : nullptr;
      t.total = memory_.total;
      add(count, row);
      const float* total = memory_.total;
      for (const Segment* s = segments(); s < segments() + segment_count_; ++s, total += size(count) * v_.width) {
        unpack(*s, rows, total);
      }
    });
  }

  float* sum(int n, int which) const {
    const size_t of_rows = Repeated::floats(v_.rows), of_channels = Repeated::floats(v_.channels);
    float* of_sample = memory_.sums + size(n) * (3 * of_rows + 2 * of_channels);
    return which < 3 ? of_sample + size(which) * of_rows : of_sample + 3 * of_rows + size(which - 3) * of_channels;
  }

  void chunk(const int* order, int count) {
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
    for (const Segment* s = segments(); layer_.gate != nullptr && s < segments() + segment_count_; ++s) {
      for (int n = s->begin; n < s->begin + s->count; ++n) {
        float* dots = sums_.dots + size(order[n]) * experts;
        const bool first = (n - s->begin) % kScoredTogether == 0;
        for (size_t i = 0; i < experts; ++i) {
          const Vector* score = scores + size(n) * experts + i;
          dots[i] = sum_of(first ? *score : *score - *(score - experts));
        }
        if (!layer_.binary_weights) dots[s->expert] = own_dot(order[n]);
      }
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

  const Segment* segments() const { return memory_.segments; }

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
    gradients(piece, group);

    // Lines that no later band reaches are complete.
    const bool last = piece.end == v_.out_h;
    const Rows image = image_rows(v_, first, last ? lines : least(lines, (piece.end - piece.begin) * v_.stride_h));
    for (const Segment* s = segments(); s < segments() + segment_count_; ++s) {
      const size_t begin = size(s->begin);
      for (int p = 0; p < strips_of(v_); ++p) {
        input_gradient(v_, {piece.samples + begin, s->count, piece.begin, piece.end}, image, memory_.dc + begin * v_.dc,
                       p, strip(*s, piece, group, p), memory_.places, memory_.taps, memory_.runs,
                       memory_.dseen + begin * v_.seen);
      }
    }
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
  const bool rows_first_;
  const BackwardMemory memory_;
  const Normals normals_;
  const TapPlaces taps_;
  int segment_count_ = 0;
  bool clear_ = false;
};

void backward(const UnitLayer& layer, const UnitBackward& io, const UnitKept& kept, const UnitSums& sums,
              const SamplesByExpert& samples, int first, int last, const float* directions, float* shared,
              float* scratch) {
  Backward(layer, io, kept, sums, directions, scratch).samples(samples, first, last, shared);
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
