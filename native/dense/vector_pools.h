// Pools and means on vectors of channels, as dense/vector.h has the convolutions.
#pragma once
#include <cstring>

#include "base/lanes.h"
#include "dense/levels.h"

namespace ebnet {
namespace {

struct TapRange {
  int begin, end;
};

inline TapRange inside(int first, int dilation, int kernel, int extent) {
  int begin = 0, end = kernel;
  while (begin < kernel && first + begin * dilation < 0) ++begin;
  while (end > begin && first + (end - 1) * dilation >= extent) --end;
  return {begin, end};
}

// One output pixel of a pool: combine(sum so far, value) over the window's pixels inside the image, then finish. Four
// vectors of channels at a time, so that a window is walked through seldom.
template <typename Start, typename Combine, typename Finish>
void pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
          int row_begin, int row_end, Start start, Combine combine, Finish finish) {
  constexpr int kTogether = 4;
  const int out_w = s.out_w();
  for (int y = row_begin; y < row_end; ++y) {
    const TapRange rows = inside(y * s.stride - s.pad, 1, s.kernel, s.in_h);
    for (int x = 0; x < out_w; ++x) {
      const TapRange columns = inside(x * s.stride - s.pad, 1, s.kernel, s.in_w);
      const long origin = static_cast<long>(y * s.stride - s.pad) * s.in_w + (x * s.stride - s.pad);
      const float* window =
          input + (origin + static_cast<long>(rows.begin) * s.in_w + columns.begin) * static_cast<long>(input_stride);
      float* out = output + (size(y) * size(out_w) + size(x)) * output_stride;
      const float count = static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
      const auto channels = [&](int c, auto vectors, auto read, auto write, int lanes) {
        constexpr int kVectors = decltype(vectors)::value;
        decltype(start(read(window))) sums[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[v] = start(read(window + c + v * lanes));
        const float* row = window + c;
        for (int ky = rows.begin; ky < rows.end; ++ky, row += size(s.in_w) * input_stride) {
          const float* at = row;
          for (int kx = columns.begin; kx < columns.end; ++kx, at += input_stride) {
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) sums[v] = combine(sums[v], read(at + v * lanes));
          }
        }
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) write(out + c + v * lanes, finish(sums[v], count));
      };
      int c = 0;
      for (; c + kTogether * kLanes <= s.channels; c += kTogether * kLanes) {
        channels(c, std::integral_constant<int, kTogether>{}, load, store, kLanes);
      }
      for (; c + kLanes <= s.channels; c += kLanes) {
        channels(c, std::integral_constant<int, 1>{}, load, store, kLanes);
      }
      for (; c < s.channels; ++c) {
        channels(c, std::integral_constant<int, 1>{}, [](const float* from) { return *from; },
                 [](float* to, float value) { *to = value; }, 1);
      }
    }
  }
}

void max_pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
              int row_begin, int row_end) {
  pool(s, input, input_stride, output, output_stride, row_begin, row_end, [](auto first) { return first; },
       [](auto a, auto b) { return b > a ? b : a; }, [](auto sum, float) { return sum; });
}

void average_pool(const PoolShape& s, const float* input, size_t input_stride, float* output, size_t output_stride,
                  int row_begin, int row_end) {
  pool(s, input, input_stride, output, output_stride, row_begin, row_end, [](auto first) { return decltype(first){}; },
       [](auto a, auto b) { return a + b; }, [](auto sum, float count) { return sum / count; });
}

void global_average_pool(const float* input, size_t input_stride, int pixels, int channels, float* output) {
  int c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    Vector sum = {};
    for (int p = 0; p < pixels; ++p) sum += load(input + size(p) * input_stride + size(c));
    store(output + c, sum / static_cast<float>(pixels));
  }
  for (; c < channels; ++c) {
    float sum = 0.0f;
    for (int p = 0; p < pixels; ++p) sum += input[size(p) * input_stride + size(c)];
    output[c] = sum / static_cast<float>(pixels);
  }
}

void row_means(const float* sums, int rows, int channels, double count, float* means) {
  constexpr int kDoubles = kLanes / 2;  // of a register
  constexpr int kTogether = 4;          // totals that do not wait for each other
  using Doubles = double __attribute__((vector_size(kDoubles * sizeof(double))));
  using Singles = float __attribute__((vector_size(kDoubles * sizeof(float))));
  int c = 0;
  for (; c + kTogether * kDoubles <= channels; c += kTogether * kDoubles) {
    Doubles totals[kTogether] = {};
    for (int row = 0; row < rows; ++row) {
      const float* const from = sums + size(row) * size(channels) + size(c);
#pragma GCC unroll 4
      for (int v = 0; v < kTogether; ++v) {
        Singles some;
        std::memcpy(&some, from + v * kDoubles, sizeof some);
        totals[v] += __builtin_convertvector(some, Doubles);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) {
      const Singles some = __builtin_convertvector(totals[v] / count, Singles);
      std::memcpy(means + c + v * kDoubles, &some, sizeof some);
    }
  }
  for (; c < channels; ++c) {
    double total = 0.0;
    for (int row = 0; row < rows; ++row) total += static_cast<double>(sums[size(row) * size(channels) + size(c)]);
    means[c] = static_cast<float>(total / count);
  }
}

}  // namespace
}  // namespace ebnet
