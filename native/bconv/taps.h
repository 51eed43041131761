// Which taps of an output coordinate fall inside the image: along one axis they are always a range.
#pragma once

namespace ebnet {
namespace {

struct TapRange {
  int begin, end;  // kernel positions
};

// Taps k in [0, kernel) with 0 <= out * stride + k * dilation - pad < size.
inline TapRange inside_taps(int out, int stride, int dilation, int pad, int kernel, int size) {
  const int first = out * stride - pad;
  int begin = 0;
  while (begin < kernel && first + begin * dilation < 0) ++begin;
  int end = kernel;
  while (end > begin && first + (end - 1) * dilation >= size) --end;
  return {begin, end};
}

}  // namespace
}  // namespace ebnet
