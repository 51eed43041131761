// The AVX-512 kernel behind a C function, for the build in which its intrinsics are emulated.
#include "bconv/avx512_layout.h"
#include "bconv/kernels.h"

extern "C" const char* ebnet_run_emulated_avx512(const int* n, const std::uint8_t* canonical, const std::uint64_t* input,
                                                 const float* scale, const float* slope, const float* skip,
                                                 const float* bn_scale, const float* bn_shift, float* stream,
                                                 std::uint64_t* bits, float* row_sums, std::int32_t* dots,
                                                 int bits_per_group, int split) {
  const ebnet::ConvShape shape{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12]};
  const std::size_t channels = static_cast<std::size_t>(shape.out_channels);
  const ebnet::Epilogue epilogue{scale,    slope,    skip, channels,       stream,   channels,
                                 bn_scale, bn_shift, bits, bits_per_group, row_sums, dots};
  const ebnet::Kernel& kernel = ebnet::kAvx512Kernel;
  const ebnet::PackedWeights weights = kernel.prepare(canonical, shape);
  ebnet::AlignedBytes scratch(kernel.scratch_bytes(shape));
  kernel.run({&shape, &weights, input, &epilogue, 0, split, scratch.data()});
  kernel.run({&shape, &weights, input, &epilogue, split, shape.out_h(), scratch.data()});
  return "avx512-popcount (emulated)";
}
