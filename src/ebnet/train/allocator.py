"""glibc's allocator, told to keep what training frees.

A training step frees and takes the same large buffers again and again. By default glibc maps and unmaps each from the
system, and the page faults that follow cost narrow networks a good part of a step.
"""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """For the rest of the process: no block gets a mapping of its own, and the heap is not given back."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
