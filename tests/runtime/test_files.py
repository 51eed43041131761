"""Faults of files as files."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebnet
from ebnet._native import Engine
from ebnet.errors import ConfigError, FormatError
from tests.runtime.tiny_file import TinyFile


def code(path: Path | str) -> str:
    with pytest.raises(FormatError) as caught:
        ebnet.load(path)
    return caught.value.code  # type: ignore[attr-defined]


def test_missing_directory_and_pipe(tmp_path: Path) -> None:
    assert code(tmp_path / "nothing.ebn") == "FileMissing"
    with pytest.raises(FileNotFoundError):
        ebnet.load(tmp_path / "nothing.ebn")
    assert code(tmp_path) == "FileUnreadable"
    os.mkfifo(tmp_path / "pipe")
    assert code(tmp_path / "pipe") == "FileUnreadable"


def test_names_are_bytes_to_the_system(tmp_path: Path) -> None:
    """Any name a file can have, as text or as bytes; none that the system would read otherwise."""
    path = tmp_path / os.fsdecode(b"\xff\xfe.ebn")
    path.write_bytes(TinyFile().content())
    assert ebnet.load(path).classes == ebnet.load(os.fsencode(path)).classes == 4
    path.write_bytes(b"\x00" * 100)
    with pytest.raises(FormatError):
        ebnet.load(path)
    good = tmp_path / "good.ebn"
    good.write_bytes(TinyFile().content())
    assert code(f"{good}\0.txt") == "FileUnreadable"


@pytest.mark.parametrize("wrong", ["2", 2.0, None, [1]])
def test_threads_of_another_type(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"threads={wrong!r}: expected")):
        ebnet.load(tmp_path, threads=wrong)


def test_an_oversized_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.ebn"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    assert code(path) == "FileTooLarge"


def test_a_file_that_shrinks_is_an_error_not_a_signal(tmp_path: Path) -> None:
    """Positioned reads find the end of the file, whatever its size was when it was opened."""
    path = tmp_path / "net.ebn"
    path.write_bytes(TinyFile().content())
    script = "import ebnet, sys\ntry: ebnet.load(sys.argv[1])\nexcept ebnet.errors.FormatError as e: print(e.code)"
    # A library that reports the old size for the truncated file stands for the race.
    source = tmp_path / "size.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>\n#include <sys/stat.h>\n"
        "int fstat(int fd, struct stat *s) {\n"
        '  int (*real)(int, struct stat *) = dlsym(RTLD_NEXT, "fstat");\n'
        "  int r = real(fd, s);\n"
        f"  if (r == 0 && s->st_size == 4000) s->st_size = {path.stat().st_size};\n"
        "  return r;\n}\n"
    )
    library = tmp_path / "size.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    path.write_bytes(path.read_bytes()[:4000])
    assert code(path) == "TensorOffsetsInvalid"
    environment = os.environ | {"LD_PRELOAD": str(library)}
    result = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "FileTruncated", result.stderr


def run_after(path: Path, change: Callable[[], object]) -> str:
    """What the first run says where the file is changed between loading and running."""
    path.write_bytes(TinyFile().content())
    engine, image = ebnet.load(path), np.zeros((1, 8, 8, 3), np.uint8)
    change()
    try:
        logits = engine(image)
    except FormatError as error:
        return error.code  # type: ignore[attr-defined]
    np.testing.assert_array_equal(logits, Engine.load_memory(TinyFile().content(), 1).run(image)[0])
    return "runs"


def test_experts_are_read_from_the_file_that_was_verified(tmp_path: Path) -> None:
    """They are laid out when first chosen: from the same bytes, or not at all."""
    path, other = tmp_path / "net.ebn", tmp_path / "other.ebn"
    content = TinyFile().content()
    begin = 8 + int.from_bytes(content[:8], "little")
    other.write_bytes(content[:begin] + bytes(len(content) - begin))
    assert run_after(path, lambda: None) == "runs"
    assert run_after(path, path.unlink) == "runs"
    assert run_after(path, lambda: path.write_bytes(other.read_bytes())) == "FileChanged"
    assert run_after(path, lambda: os.truncate(path, begin)) == "FileTruncated"
    assert run_after(path, lambda: other.replace(path)) == "runs"


def test_a_small_hostile_file_allocates_little(tmp_path: Path) -> None:
    """A file that names enormous sizes fails within a tight limit on memory."""
    file = TinyFile()
    file.metadata["labels"] = []
    file.ops[10]["out"] = file.ops[11]["out"] = 32768
    path = tmp_path / "net.ebn"
    path.write_bytes(file.content())
    script = (
        "import resource, sys, ebnet, numpy, ebnet.runtime.engine\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20),) * 2)\n"
        "try: ebnet.load(sys.argv[1])\n"
        "except ebnet.errors.FormatError as e: print(e.code)"
    )
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "TensorShapeWrong", result.stderr
