// Whether this process may use the tile registers.
#pragma once

namespace ebnet::amx {

// The CPU has AMX for bytes, the operating system keeps its state, and grants it to this process. On Linux permission
// is asked for at the first call, once: it holds for the whole process, and for threads and processes that it creates
// from then on. Elsewhere the answer is no. To be asked only where AVX-512 runs.
bool permitted();

}  // namespace ebnet::amx
