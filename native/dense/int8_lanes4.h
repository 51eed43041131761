// int8 layers on 4 lanes: what NEON and WebAssembly have in common, by the compiler's vector types.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dense/int8_levels.h"

namespace ebnet {
namespace {

typedef std::int32_t Ints __attribute__((vector_size(16)));
typedef float Reals __attribute__((vector_size(16)));
constexpr int kLanes = 4;

template <typename Vector>
EBNET_INLINE Vector load(const void* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline Ints load_ints(const void* from) { return load<Ints>(from); }
inline Reals load_reals(const float* from) { return load<Reals>(from); }
inline void store_reals(float* to, Reals reals) { std::memcpy(to, &reals, sizeof reals); }

inline Reals to_reals(Ints sums) { return __builtin_convertvector(sums, Reals); }
Reals fused(Reals a, Reals b, Reals c);

inline Reals not_negative(Reals reals) { return reals < 0.0f ? Reals{} : reals; }
inline Reals negative_scaled(Reals reals, Reals slope) { return reals < 0.0f ? slope * reals : reals; }

// As byte_of, to the last bit: whole numbers of 0 to 255, NaN gives 0.
inline Ints clamped_bytes(Reals reals, Reals inverse, Reals zero) {
  const Reals most = 255.0f - Reals{};
  Reals scaled = fused(reals, inverse, zero);
  scaled = scaled > 0.0f ? scaled : Reals{};
  scaled = scaled < most ? scaled : most;
  return reinterpret_cast<Ints>(scaled + kRounder) & 0xFF;
}
inline Ints clamped_bytes(Reals reals, float inverse, float zero) {
  return clamped_bytes(reals, inverse - Reals{}, zero - Reals{});
}

}  // namespace
}  // namespace ebnet
