"""What makes numbers: the machine, the versions, the command and the date, to stand beside them."""

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ebnet


def cpu_name() -> str:
    """The model of the CPU, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def provenance() -> dict[str, str]:
    """Where and when this process runs, and what started it."""
    cores = os.cpu_count() or 1
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{cpu_name()}, {cores} core{'s' if cores > 1 else ''}",
        "versions": f"ebnet {ebnet.__version__}, torch {_version('torch')}, Python {platform.python_version()}",
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _version(package: str) -> str:
    """Without importing the package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
