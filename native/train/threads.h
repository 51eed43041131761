// The threads of training, and what each of them keeps between calls.
#pragma once
#include <cstddef>
#include <functional>

namespace ebnet {

// body(part) for the parts 0 .. parts - 1, each on a thread of its own, of a pool that lives as long as the process. A second
// caller at the same time waits. Which thread takes a part is open: a result must depend on the part alone.
void on_threads(int parts, const std::function<void(int)>& body);

// At least so many floats, aligned for vectors, of the calling thread. They outlive the call, because fresh pages each time
// would cost narrow layers a good part of it, and hold whatever the last user left.
float* scratch(std::size_t floats);

// The same for what the threads of one call share: of the thread that makes the call.
float* shared_scratch(std::size_t floats);

}  // namespace ebnet
