// The kernels for wide vectors behind a C function, for the build in which their intrinsics are emulated.
#include <algorithm>
#include <cstring>

#include "bconv/kernels.h"

// Runs the kernel of that name on one sample, rows [0, split) and the others apart. Returns the name, or null where no
// emulated kernel has it, the kernel does not support the shape, or it wrote past its scratch.
extern "C" const char* ebnet_run_emulated(const char* name, const int* n, const std::uint8_t* canonical,
                                          const std::uint64_t* input, const float* scale, const float* shift,
                                          const float* slope, const float* after, const void* skip,
                                          const float* bn_scale, const float* bn_shift, void* stream,
                                          std::uint64_t* bits, float* row_sums, std::int32_t* dots, int skip_type,
                                          int stream_type, int bits_per_group, int split, int act_last) {
  const ebnet::ConvShape shape{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12]};
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  ebnet::Epilogue e;
  e.scale = scale;
  e.shift = shift;
  e.slope = slope;
  e.act_last = act_last != 0;
  e.after = after;
  e.skip = skip;
  e.skip_type = static_cast<ebnet::StreamType>(skip_type);
  e.stream = stream;
  e.stream_type = static_cast<ebnet::StreamType>(stream_type);
  e.skip_stride = e.stream_stride = channels;
  e.bn_scale = bn_scale;
  e.bn_shift = bn_shift;
  e.bits = bits;
  e.bits_per_group = bits_per_group;
  e.row_sums = row_sums;
  e.dots = dots;
  for (const ebnet::Kernel* kernel :
       {&ebnet::kAvx512Kernel, &ebnet::kAvx512CarrySaveKernel, &ebnet::kAmxKernel}) {
    if (std::strcmp(kernel->name, name) != 0 || !kernel->supports(shape)) continue;
    const ebnet::PackedWeights weights = kernel->prepare(canonical, shape);
    const std::size_t bytes = kernel->scratch_bytes(shape);
    ebnet::AlignedBytes scratch(bytes + ebnet::kAlignment);
    constexpr std::uint8_t kLeft = 0x55;  // as if by another layer
    std::fill_n(scratch.data(), scratch.size(), kLeft);
    kernel->run({&shape, &weights, input, &e, 0, split, scratch.data()});
    kernel->run({&shape, &weights, input, &e, split, shape.out_h(), scratch.data()});
    const auto untouched = [](std::uint8_t byte) { return byte == kLeft; };
    if (!std::all_of(scratch.data() + bytes, scratch.data() + scratch.size(), untouched)) return nullptr;
    return kernel->name;
  }
  return nullptr;
}
