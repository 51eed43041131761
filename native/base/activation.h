// What follows a real-valued layer.
#pragma once

namespace ebnet {

enum class Activation { none, relu, prelu };

}  // namespace ebnet
