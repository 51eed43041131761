// A linear map of the model, as wide as the file has it.
#pragma once
#include "dense/dense.h"
#include "engine/model.h"

namespace ebnet {

// Rows [begin, begin + rows) of a linear map.
inline void linear_rows(const Matrix& matrix, int begin, int rows, const float* bias, const float* slope,
                        Activation activation, const float* input, int in_features, float* output, DenseLevel level) {
  const std::size_t first = static_cast<std::size_t>(begin) * static_cast<std::size_t>(in_features);
  if (matrix.halves.empty()) {
    linear(matrix.reals.data() + first, bias, slope, activation, input, in_features, rows, output, level);
  } else {
    linear(matrix.halves.data() + first, bias, slope, activation, input, in_features, rows, output, level);
  }
}

}  // namespace ebnet
