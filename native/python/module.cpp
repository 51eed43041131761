// The extension module: each part of the core binds itself.
#include <nanobind/nanobind.h>

void bind_engine(nanobind::module_& module);

NB_MODULE(_native, module) {
  module.doc() = "ebnet's native core";
  bind_engine(module);
}
