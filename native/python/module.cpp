// The extension module: each part of the core binds itself.
#include <nanobind/nanobind.h>

#include "python/engine.h"
#include "python/kernels.h"
#include "python/train.h"

NB_MODULE(_native, module) {
  module.doc() = "ebnet's native core";
  ebnet::bind_engine(module);
  ebnet::bind_kernels(module);
  ebnet::bind_train(module);
}
