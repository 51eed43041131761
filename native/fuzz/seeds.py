"""Writes the seeds of the fuzzer: small packed files with every op, in all widths of reals and in other units."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "runtime"))
from tiny_file import TinyFile, TinyInt8File, TinySumsFile, TinyUnitsFile


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for dtype in (np.float32, np.float16):
        (folder / f"{dtype.__name__}.ebn").write_bytes(TinyFile(dtype).content())
    (folder / "int8.ebn").write_bytes(TinyInt8File().content())
    (folder / "units.ebn").write_bytes(TinyUnitsFile().content())
    (folder / "sums.ebn").write_bytes(TinySumsFile().content())


if __name__ == "__main__":
    main()
