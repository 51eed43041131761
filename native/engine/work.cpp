#include "engine/work.h"

namespace ebnet {

double work_of(const Op& op, const OpPlan& planned, const ValuePlan& input, const ValuePlan& output) {
  const double read = static_cast<double>(input.pixels()) * input.channels;
  const double written = static_cast<double>(output.pixels()) * output.channels;
  switch (op.kind) {
    case OpKind::Conv:
    case OpKind::Linear:
      return planned.macs + read + written;
    case OpKind::Binary: {
      const double words = written * planned.conv.taps() * planned.conv.words_per_group();
      const double gate = static_cast<double>(op.in_channels) * (op.experts + op.squeeze) +
                          static_cast<double>(op.out_channels) * op.squeeze;
      return words + read + 2 * written + gate;
    }
    case OpKind::MaxPool:
    case OpKind::AvgPool:
      return written * (op.kernel * op.kernel + 1);
    case OpKind::Concat:
      return 2 * written;
    case OpKind::Sum:
      return planned.macs + written;
    case OpKind::GlobalPool:
      break;
  }
  return read + written;
}

std::size_t laid_out_bytes(const Op& op, const ConvShape& shape) {
  return static_cast<std::size_t>(op.experts) * static_cast<std::size_t>(shape.out_channels) *
         static_cast<std::size_t>(shape.taps()) * static_cast<std::size_t>(shape.words_per_group()) *
         sizeof(std::uint64_t);
}

}  // namespace ebnet
