// Whether this process may use the tile registers.
#pragma once

namespace ebnet::amx {

// The CPU has AMX for bytes, the operating system keeps its state, and this process may use it. Linux wants to be
// asked, which the first call does, once: permission holds for the whole process, threads of the time after included,
// and for processes it forks. It is refused by kernels before 5.16, and where a thread's own signal stack is too small
// for the state. Other systems: no. To be called only where AVX-512 runs.
bool permitted();

}  // namespace ebnet::amx
