"""Faults of files as files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ebnet
from ebnet.errors import FormatError
from tests.runtime.tiny_file import TinyFile


def code(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        ebnet.load(path)
    return caught.value.code  # type: ignore[attr-defined]


def test_missing_directory_and_pipe(tmp_path: Path) -> None:
    assert code(tmp_path / "nothing.ebn") == "FileUnreadable"
    assert code(tmp_path) == "FileUnreadable"
    os.mkfifo(tmp_path / "pipe")
    assert code(tmp_path / "pipe") == "FileUnreadable"


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
