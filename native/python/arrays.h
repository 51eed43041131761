// Arrays as the bindings take them: numpy's or torch's, without a copy.
#pragma once
#include <nanobind/ndarray.h>
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

#include "base/cpu.h"
#include "base/stream.h"

namespace ebnet {

template <typename T>
using In = nanobind::ndarray<const T, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using Out = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument(message);
}

inline StreamType stream_type_of(const std::string& name) {
  for (const StreamType type : {StreamType::fp32, StreamType::fp16, StreamType::bf16}) {
    if (name == stream_type_name(type)) return type;
  }
  throw std::invalid_argument("no stream type is called " + name + "; there are fp32, fp16 and bf16");
}

inline DenseLevel level_of(const std::string& name) {
  for (const DenseLevel level : kDenseLevels) {
    if (name != dense_level_name(level)) continue;
    require(cpu_supports(level), "this CPU cannot run " + name);
    return level;
  }
  throw std::invalid_argument("no level is called " + name);
}

}  // namespace ebnet
