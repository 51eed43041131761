// Binary convolution for any machine: xor and popcount on 64-bit words.
//
// For n channels with signs as bits, a product is -1 where the bits differ and +1 where they agree, so
//   dot = n - 2 * popcount(a xor w).
// Bits past the last channel are 0 on both sides and never differ. Taps in the zero padding are masked out of the
// popcount and not counted in n, which makes them contribute exactly 0. All taps of one pixel and group are gathered
// into one row of words first, so that each output channel is a single loop.
#include "bconv/epilogue_scalar.h"
#include "bconv/kernels.h"
#include "bconv/taps.h"
#include "bits/canonical.h"

namespace ebnet {
namespace {

bool supports(const ConvShape&) { return true; }

// [out channel][ky][kx][words of 64 bits].
PackedWeights prepare(const std::uint8_t* canonical, const ConvShape& shape) {
  PackedWeights packed;
  const std::size_t words = static_cast<std::size_t>(shape.words_per_group());
  const std::size_t taps = static_cast<std::size_t>(shape.taps());
  packed.data = AlignedBytes(static_cast<std::size_t>(shape.out_channels) * taps * words * sizeof(std::uint64_t));
  std::uint64_t* out = packed.data.as<std::uint64_t>();
  for (int o = 0; o < shape.out_channels; ++o) {
    for (int tap = 0; tap < shape.taps(); ++tap, out += words) {
      for (int c = 0; c < shape.in_per_group(); ++c) {
        out[c / 64] |= static_cast<std::uint64_t>(canonical_bit(canonical, shape, o, tap, c)) << (c % 64);
      }
    }
  }
  return packed;
}

std::size_t filter_words(const ConvShape& shape) {
  return static_cast<std::size_t>(shape.taps()) * static_cast<std::size_t>(shape.words_per_group());
}

// The gathered words, and their masks.
std::size_t scratch_bytes(const ConvShape& shape) { return 2 * filter_words(shape) * sizeof(std::uint64_t); }

#if defined(__GNUC__) && (defined(__POPCNT__) || defined(__aarch64__) || defined(__wasm__))
inline int popcount(std::uint64_t word) { return __builtin_popcountll(word); }  // the compiler has an instruction for it
#else
// Sums bits in fields of 2, 4 and 8 bits, then all bytes by one multiplication: no instruction set is assumed.
inline int popcount(std::uint64_t word) {
  word = word - ((word >> 1) & 0x5555555555555555u);
  word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<int>((word * 0x0101010101010101u) >> 56);
}
#endif

// The words of one group under the kernel at output (y, x), and masks that are 0 where they are padding.
void gather(const ConvTask& task, int y, int x, int group, std::uint64_t* taps, std::uint64_t* masks) {
  const ConvShape& s = *task.shape;
  const int words = s.words_per_group();
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    const int in_y = y * s.stride_h + ky * s.dilation_h - s.pad_h;
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      const int in_x = x * s.stride_w + kx * s.dilation_w - s.pad_w;
      const bool inside = in_y >= 0 && in_y < s.in_h && in_x >= 0 && in_x < s.in_w;
      const std::size_t pixel = inside ? static_cast<std::size_t>(in_y * s.in_w + in_x) : 0;
      const std::uint64_t* from = task.input + pixel * static_cast<std::size_t>(s.words_per_pixel()) +
                                  static_cast<std::size_t>(group * words);
      for (int i = 0; i < words; ++i) {
        *taps++ = from[i];
        *masks++ = inside ? ~std::uint64_t{0} : 0;
      }
    }
  }
}

void run(const ConvTask& task) {
  const ConvShape& s = *task.shape;
  const std::size_t count = filter_words(s);
  std::uint64_t* taps = static_cast<std::uint64_t*>(task.scratch);
  std::uint64_t* masks = taps + count;
  begin_rows(s, *task.epilogue, task.row_begin, task.row_end);
  for (int y = task.row_begin; y < task.row_end; ++y) {
    const TapRange rows = inside_taps(y, s.stride_h, s.dilation_h, s.pad_h, s.kernel_h, s.in_h);
    for (int x = 0; x < s.out_w(); ++x) {
      const TapRange columns = inside_taps(x, s.stride_w, s.dilation_w, s.pad_w, s.kernel_w, s.in_w);
      const int products = (rows.end - rows.begin) * (columns.end - columns.begin) * s.in_per_group();
      const std::size_t row = static_cast<std::size_t>(y);
      const std::size_t pixel = row * static_cast<std::size_t>(s.out_w()) + static_cast<std::size_t>(x);
      const std::uint64_t* filter = task.weights->data.as<std::uint64_t>();
      for (int o = 0; o < s.out_channels; ++o, filter += count) {
        if (o % s.out_per_group() == 0) gather(task, y, x, o / s.out_per_group(), taps, masks);
        int differing = 0;
        for (std::size_t i = 0; i < count; ++i) differing += popcount((taps[i] ^ filter[i]) & masks[i]);
        finish_one(s, *task.epilogue, pixel, row, o, products - 2 * differing);
      }
    }
  }
}

}  // namespace

const Kernel kPortableKernel = {"portable", Isa::portable, supports, prepare, scratch_bytes, run};

}  // namespace ebnet
