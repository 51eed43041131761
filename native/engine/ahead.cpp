#include "engine/ahead.h"

#include <algorithm>

namespace ebnet {
namespace {

constexpr std::size_t kSharers = 20;  // binary ops among which a layer is shared out, at most

template <class T>
MemoryRange range_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

MemoryRange range_of(const AlignedBytes& bytes) { return {bytes.data(), bytes.size()}; }

// Of a real layer's weights, as wide as they are kept.
MemoryRange real_weights(const Op& op, const OpWeights& weights) {
  if (op.int8) return range_of(weights.int8.conv.weights);
  if (op.kind == OpKind::Conv) {
    return range_of(weights.conv.halves.size() > 0 ? weights.conv.halves : weights.conv.weights);
  }
  if (op.kind != OpKind::Linear) return {nullptr, 0};
  const Matrix& matrix = weights.linear.weight;
  return matrix.halves.empty() ? range_of(matrix.reals) : range_of(matrix.halves);
}

}  // namespace

std::vector<std::vector<MemoryRange>> real_weights_ahead(const Program& program, const std::vector<OpWeights>& weights) {
  std::vector<std::vector<MemoryRange>> ahead(program.ops.size());
  std::vector<std::size_t> binary;  // those so far
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].kind == OpKind::Binary) binary.push_back(i);
    const MemoryRange all = real_weights(program.ops[i], weights[i]);
    const std::size_t sharers = std::min(kSharers, binary.size());
    for (std::size_t share = 0; share < sharers; ++share) {
      const std::size_t begin = all.bytes * share / sharers, end = all.bytes * (share + 1) / sharers;
      auto& asked = ahead[binary[binary.size() - sharers + share]];
      if (begin < end && asked.size() < kMostAhead) asked.push_back({all.data + begin, end - begin});
    }
  }
  return ahead;
}

}  // namespace ebnet
