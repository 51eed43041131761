"""Run a documented command in a scratch directory, as the tables say."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from ebnet.cli.app import app
from tests import builds
from tests.docs.commands import ROOT, Shown
from tests.docs.scratch import BUILT, link_checkout
from tests.docs.script import run_script
from tests.docs.table import MADE_BY, POSTGRES, SERVER, SHORTER, STANDS_FOR

BIN = Path(sys.executable).parent


def execute(command: Shown, place: Path, database: Callable[[], str]) -> None:
    """Run it; a failure is an AssertionError with what the command said, a missing server or right a skip.

    `database` gives the address of a PostgreSQL server, started when first asked for.
    """
    if command.program == "make" and command.line != "make":
        target = command.words[1]
        assert command_of_make(target).endswith(MADE_BY[target])
        command = replace(command, line=MADE_BY[target])
    line = changed(command)
    if POSTGRES in line:
        line = line.replace(POSTGRES, database())
    command = replace(command, line=line)
    if line.startswith("ebnet serve"):
        with serving(line, place):
            pass
    elif SERVER in line:
        with serving("ebnet serve demo/net.ebn --port 0", place) as address:
            said = in_shell(line.replace(SERVER, address), place)
        assert '"label"' in said
    elif command.words[0] == "ebnet":
        in_process(command, place)
    elif command.program in ("make", "pytest"):
        in_shell(line, ROOT)
    elif command.program == "cmake":
        with builds.alone(BUILT.name):
            BUILT.mkdir(parents=True, exist_ok=True)
            link_checkout(BUILT)
            in_shell(line, BUILT)
        if not (place / "build").exists():
            (place / "build").symlink_to(BUILT / "build")
    elif line.startswith("native/fuzz/"):
        if shutil.which("clang++") is None:
            pytest.skip("the fuzzer needs clang++ (Debian: clang libclang-rt-14-dev)")
        with builds.alone("fuzz"):
            said = in_shell(f"PYTHON={sys.executable} {line} 2>&1", ROOT)
        executed = re.search(r"number_of_executed_units: (\d+)", said)
        assert executed is not None, said
        assert int(executed[1]) >= 5000
    elif line.startswith("pip install "):
        if subprocess.run([BIN / "pip", "index", "versions", "pip"], check=False, capture_output=True).returncode:
            pytest.skip("no package registry is reached")
        in_shell(line, ROOT, pip_with_network=True)
    elif line.startswith("python benchmarks/"):
        once_for_all_pages(line)
    elif line.startswith("python examples/"):
        python(line, place)
    else:
        if "chrt" in line and subprocess.run(["chrt", "-f", "10", "true"], check=False, capture_output=True).returncode:
            pytest.skip("`chrt` may not set a real-time priority here")
        in_shell(line, place)


def changed(command: Shown) -> str:
    """The line that is run: words replaced by what they stand for, options appended."""
    line, _, output = command.line.partition(" > ")
    for change in SHORTER:
        if re.match(change.pattern, command.line):
            for old, new in change.instead.items():
                assert old in line, f"{command}: {change} changes nothing"
                line = line.replace(old, new)
            line = f"{line} {change.append}".strip()
    for word, meaning in STANDS_FOR.items():
        line = re.sub(rf"(?<![\w/]){word}(?!\w)", meaning, line)
    return f"{line} > {output}" if output else line


def constants_of(line: str) -> dict[str, str]:
    """Of a script: the constants that the table changes."""
    return {name: v for change in SHORTER if re.match(change.pattern, line) for name, v in change.constants.items()}


def command_of_make(target: str) -> str:
    """The last command of a target, which comes after its set-up."""
    asked = ["make", "--no-print-directory", "-n", target]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def in_process(command: Shown, place: Path) -> None:
    """`ebnet` within this process: loading torch once for each command would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("ebnet.report.observe.EMBEDDED", 60)  # the t-SNE of all pictures takes seconds
        done = CliRunner().invoke(app, command.words[1:])
    assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"
    if command.output is not None:
        (place / command.output).write_text(done.stdout)


def in_shell(line: str, place: Path, *, pip_with_network: bool = False) -> str:
    variables = environment() | builds.quick() | ({"PIP_NO_INDEX": "0"} if pip_with_network else {})
    done = subprocess.run(
        line, shell=True, cwd=place, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python(line: str, place: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        script, *arguments = shlex.split(line)[1:]
        run_script(Path(script), arguments, constants_of(line))


@cache
def once_for_all_pages(line: str) -> None:
    """What uses nothing of the page's directory is run once, also where several pages show it."""
    python(line, ROOT)


def environment() -> dict[str, str]:
    """The programs of the environment these tests run in, one thread, and pip without a network."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "PIP_NO_INDEX": "1", "PYTHONUNBUFFERED": "1"}


@contextmanager
def serving(line: str, place: Path) -> Iterator[str]:
    """The address of a server that answers; in the end it is interrupted as by Ctrl-C."""
    started = subprocess.Popen(shlex.split(line), cwd=place, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        found = re.search(r"is at (http://\S+)", said := started.stdout.readline())
        assert found, said
        with urlopen(found[1], timeout=30) as answer:
            assert b"<html" in answer.read()
        yield found[1]
    finally:
        started.send_signal(signal.SIGINT)
        code = started.wait(30)
    assert code == 128 + signal.SIGINT
