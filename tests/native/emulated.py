"""The AVX-512 and AMX kernels' own sources, for CPUs without these instructions.

They are compiled against SIMDe's emulation of the intrinsics and ours of the tiles (native/bconv/amx_emulated_tiles.h).
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builds import EMULATED, ROOT
from tests.native.binary_case import STREAM_TYPES, Runner

SOURCES = [
    "tests/emulated_kernels.cpp",
    "base/aligned.cpp",
    "bconv/amx.cpp",
    "bconv/amx_layout.cpp",
    "bconv/avx512.cpp",
    "bconv/avx512_carry_save.cpp",
    "bconv/avx512_layout.cpp",
]


def build(directory: Path) -> Path:
    """Compile the emulated kernels to a shared library."""
    if shutil.which("g++") is None or not Path("/usr/include/simde/x86/avx512.h").exists():
        pytest.skip("the emulated kernels need g++ and Debian's libsimde-dev")
    library = directory / "emulated_kernels.so"
    command = ["g++", "-std=c++17", "-O1", "-mavx2", "-mfma", "-mf16c", "-ffp-contract=off", "-w", "-fPIC", "-shared"]
    command += ["-DEBNET_EMULATE_AVX512", f"-I{ROOT / 'native'}", "-o", str(library)]
    subprocess.run([*command, *(str(ROOT / "native" / source) for source in SOURCES)], check=True)
    return library


def program(name: str) -> Path:
    """One of the core's test programs with these kernels in the engine itself."""
    if not Path("/usr/include/simde/x86/avx512.h").exists():
        pytest.skip("the emulated engine needs Debian's libsimde-dev")
    return EMULATED.program(name)


def runner(library: Path, name: str) -> Runner:
    """One kernel of the library behind the signature of a native kernel; its name comes back as `NAME (emulated)`."""
    function = ctypes.CDLL(str(library)).ebnet_run_emulated
    function.restype = ctypes.c_char_p

    def pointer(array: np.ndarray | None) -> ctypes.c_void_p:
        return ctypes.c_void_p(None if array is None else array.ctypes.data)

    def run(shape: list[int], weights: np.ndarray, input: np.ndarray, **options: Any) -> str:
        arrays = ("scale", "shift", "slope", "after", "skip", "bn_scale", "bn_shift", "stream", "bits", "row_sums")
        arrays += ("dots",)
        numbers = np.array(shape, np.int32)
        ran = function(
            name.encode(),
            pointer(numbers),
            pointer(weights),
            pointer(input),
            *(pointer(options.get(array)) for array in arrays),
            *(ctypes.c_int(STREAM_TYPES.index(options[of])) for of in ("skip_type", "stream_type")),
            ctypes.c_int(options["bits_per_group"]),
            ctypes.c_int(options["split"]),
            ctypes.c_int(options.get("act_last", False)),
        )
        assert ran is not None, f"no emulated {name} for the shape {shape}, or it left its scratch"
        return f"{ran.decode()} (emulated)"

    return run
