"""Trees that tests build: by one process at a time, and once for the same sources."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import builds

BUILD_AT_ONCE = """
import sys, time
from pathlib import Path
from tests import builds

builds.KEPT = Path(sys.argv[1])
log = builds.KEPT / "log"

def run(command):
    place = Path(command[command.index("-B" if "-B" in command else "--build") + 1])
    place.mkdir(exist_ok=True)
    with log.open("a") as file:
        file.write("begin\\n")
    time.sleep(0.2)
    (place / "program").touch()
    with log.open("a") as file:
        file.write("end\\n")

builds.run = run
assert builds.Tree("some", ()).program("program").is_file()
"""


def test_processes_build_one_after_the_other_and_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUILD_AT_ONCE, str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=builds.ROOT) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    configured_and_built = ["begin", "end"] * 2
    assert (tmp_path / "log").read_text().split() == configured_and_built


def test_changed_sources_are_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        place = Path(command[command.index("-B" if "-B" in command else "--build") + 1])
        place.mkdir(exist_ok=True)
        (place / "program").touch()

    (tmp_path / "CMakeLists.txt").write_text("one")
    monkeypatch.setattr(builds, "ROOT", tmp_path)
    monkeypatch.setattr(builds, "KEPT", tmp_path / "build")
    monkeypatch.setattr(builds, "run", run)
    tree = builds.Tree("some", ("-DOPTION=ON",))
    tree.program("program")
    tree.program("program")
    assert len(commands) == 2
    assert "-DOPTION=ON" in commands[0]
    (tmp_path / "CMakeLists.txt").write_text("two")
    tree.program("program")
    assert len(commands) == 4
    builds.Tree("some", ("-DOPTION=OFF",)).program("program")
    assert len(commands) == 6
    assert commands[0] != commands[4]
