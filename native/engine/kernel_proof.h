// Which kernels have proved themselves in this process (bconv/proof.h), each for every shape it is to run.
#pragma once
#include <string>
#include <vector>

#include "bconv/bconv.h"

namespace ebnet {

// Asks the kernel where it was not asked before. The portable one and the reference are what the others are held to.
bool proven(const Kernel& kernel, const ConvShape& shape);

// What is to be said of kernels that failed, one sentence each, to whoever asks first.
std::vector<std::string> take_kernel_notices();

}  // namespace ebnet
