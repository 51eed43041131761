// ebnet._native.train: what training computes natively, on torch's own memory.
#include "python/train.h"

#include "python/adam.h"
#include "python/images.h"
#include "python/real_layers.h"
#include "python/train_unit.h"

namespace nb = nanobind;

namespace ebnet {

void bind_train(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("train", "The training of binary networks on the CPU.");
  bind_adam(m);
  bind_images(m);
  bind_real_layers(m);
  bind_train_unit(m);
}

}  // namespace ebnet
