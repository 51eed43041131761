// Inline functions that no instruction set leaks through.
//
// A file compiled under instruction-set flags leaves its copy of an inline function for the linker, which keeps one copy
// for all files: where it keeps that one, a CPU without the set crashes in code that was to run anywhere. So what such
// files include has no inline functions of external linkage: free functions are in unnamed namespaces, members are
// EBNET_INLINE, and functions of std:: are left out but for those the compiler knows by itself (std::memcpy).
#pragma once

#define EBNET_INLINE __attribute__((always_inline)) inline
