"""Files that are small and would cost much: refused or quickly done, and a run that is under way can be stopped."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebnet
from ebnet._native import Engine
from ebnet.errors import ConfigError, FormatError, NonFiniteError, ShapeError
from tests.runtime.tiny_file import TinyFile

SECONDS, MEGABYTES = 1.0, 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.ebn"
    file.write_bytes(TinyFile().content())
    return file


def program(channels: int, middle: list[dict[str, Any]], tensors: dict[str, np.ndarray], out: int) -> TinyFile:
    """`middle` between an image of `channels` channels and the classifier of `out` channels."""
    file = TinyFile()
    count = len(middle)
    file.ops = [*middle, {"op": "global_pool", "in": [count]}]
    file.ops.append({"op": "linear", "in": [count + 1], "name": "h", "out": 4})
    file.tensors = tensors | {"h.weight": np.zeros((4, out), np.float32), "h.bias": np.zeros(4, np.float32)}
    plain = {"mean": [0.5] * channels, "std": [0.25] * channels, "in_channels": channels}
    file.metadata["preprocessing"] = {"size": 28, "resize": 28, "crop": 28} | plain
    return file


def pools(kind: str, count: int, doublings: int) -> TinyFile:
    """Pools of 15x15, one after another, of a map made wide by concatenating it with itself."""
    ops: list[dict[str, Any]] = [{"op": "concat", "in": [i, i]} for i in range(doublings)]
    for i in range(count):
        ops.append({"op": kind, "in": [doublings + i], "kernel": 15, "stride": 1, "pad": 7})
    return program(1, ops, {}, 2**doublings)


def depthwise(layers: int, doublings: int) -> TinyFile:
    """Binary layers of 15x15 in as many groups as channels: a word of 64 bits for each weight of one bit."""
    channels = 2**doublings
    ops: list[dict[str, Any]] = [{"op": "concat", "in": [i, i]} for i in range(doublings)]
    tensors = {}
    for i in range(layers):
        window = {"out": channels, "kernel": 15, "pad": 7, "groups": channels}
        ops.append({"op": "binary", "in": [doublings + i], "name": f"b{i}", **window})
        tensors[f"b{i}.bits"] = np.zeros((1, channels, 29), np.uint8)
        tensors[f"b{i}.norm"] = np.zeros((2, channels), np.float32)
        tensors[f"b{i}.scale"] = np.ones(channels, np.float32)
    return program(1, ops, tensors, channels)


COSTLY = {
    "average pools of 32,768 channels": lambda: pools("avgpool", 150, 15),
    "4,000 max pools": lambda: pools("maxpool", 4000, 4),
    "4,000 max pools of one channel": lambda: pools("maxpool", 4000, 0),
    "depthwise binary layers": lambda: depthwise(2, 15),
    "narrower depthwise binary layers": lambda: depthwise(8, 11),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_file_is_refused_or_quickly_done(name: str, tmp_path: Path) -> None:
    """In a process of its own, whose memory is its own."""
    path = tmp_path / "costly.ebn"
    path.write_bytes(COSTLY[name]().content())
    code = (
        "import resource, sys, time, numpy as np, ebnet; from ebnet.errors import ShapeError\n"
        "images = np.zeros((1, 28, 28, 1), np.uint8); ebnet.load('zoo:digits-e4')(images)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; start = time.process_time()\n"
        "try: ebnet.load(sys.argv[1])(images); print('done')\n"
        "except ShapeError as error: print(error.code)\n"
        "print(time.process_time() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    how, figures = result.stdout.splitlines()
    seconds, megabytes = map(float, figures.split())
    assert how in ("PlanTooLarge", "done")
    assert seconds < SECONDS
    assert megabytes < MEGABYTES


def test_a_size_out_of_proportion_is_refused_by_the_reader() -> None:
    file = TinyFile()
    file.metadata["preprocessing"] |= {"size": 8192, "resize": 8192, "crop": 8192}
    with pytest.raises(FormatError, match=r"FieldOutOfRange: preprocessing: field 'size' is 8192, expected 1 to 1024"):
        Engine.load_memory(file.content(), 1)
    Engine.load_memory(file.content(), 1, side=8192)


def test_the_caller_sets_the_limits(path: Path) -> None:
    images = np.zeros((1, 8, 8, 3), np.uint8)
    ebnet.load(path)(images)
    for limits, words in (
        (ebnet.Limits(work=1000), r"PlanTooLarge: op 0 \(conv\): more work for an image of 8x8 than goes with"),
        (ebnet.Limits(memory=1000), r"PlanTooLarge: an image of 8x8 needs .* together at most 1000; allow more"),
    ):
        with pytest.raises(ShapeError, match=words):
            ebnet.load(path, limits=limits)(images)
    with pytest.raises(ShapeError, match="InputSizeInvalid"):
        ebnet.load(path, limits=ebnet.Limits(side=8))(np.zeros((1, 9, 9, 3), np.uint8))
    costly = path.with_name("costly.ebn")
    costly.write_bytes(pools("avgpool", 20, 7).content())
    with pytest.raises(ShapeError, match="PlanTooLarge"):
        ebnet.load(costly)(np.zeros((1, 28, 28, 1), np.uint8))
    assert ebnet.load(costly, limits=ebnet.Limits(work=1 << 40))(np.zeros((1, 28, 28, 1), np.uint8)).shape == (1, 4)


@pytest.mark.parametrize("wrong", [{"work": 0}, {"memory": -1}, {"side": 2.5}, {"work": True}, {"memory": 2**63}])
def test_limits_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"limits: \w+=.*expected a whole number"):
        ebnet.Limits(**wrong)


def test_limits_of_another_type() -> None:
    with pytest.raises(ConfigError, match=r"limits=\{'work': 3\}: expected ebnet.Limits"):
        ebnet.load("zoo:digits-e4", limits={"work": 3})  # type: ignore[arg-type]


def test_ctrl_c_stops_a_run_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    path = tmp_path / "long.ebn"
    path.write_bytes(pools("avgpool", 4000, 9).content())
    code = (
        "import sys, numpy as np, ebnet, time\n"
        "engine = ebnet.load(sys.argv[1], limits=ebnet.Limits(work=1 << 60))\n"
        "print('running', flush=True)\n"
        "try: engine(np.zeros((1, 28, 28, 1), np.uint8))\n"
        "except KeyboardInterrupt: print('stopped', time.monotonic(), flush=True)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    time.sleep(0.5)
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    word, when = child.stdout.read().split()
    assert word == "stopped"
    assert float(when) - sent < 0.1 * slowness()
    assert child.wait() == 0


def slowness() -> float:
    """How much longer than alone this process takes now: others may be using the cores."""
    wall, own = time.monotonic(), time.process_time()
    while time.process_time() - own < 0.05:
        pass
    return max(1.0, (time.monotonic() - wall) / 0.05)


def test_logits_that_are_no_numbers_are_an_error() -> None:
    file = TinyFile()
    file.tensors["g.weight"][:] = 3e38
    file.tensors["h.weight"][:] = 3e38
    engine = Engine.load_memory(file.content(), 1)
    with pytest.raises(NonFiniteError, match=r"LogitsNotFinite: image 0: the network's numbers overflow"):
        engine.run(np.full((1, 8, 8, 3), 200, np.uint8))


def test_threads_that_cannot_be_started_are_an_error(path: Path) -> None:
    code = (
        "import resource, sys, ebnet; from ebnet.errors import ConfigError; ebnet.load(sys.argv[1])\n"
        "pages = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages + (100 << 20),) * 2)\n"
        "try: ebnet.load(sys.argv[1], threads=256)\n"
        "except ConfigError as error: print(error)\n"
        "print(ebnet.load(sys.argv[1], threads=2).threads)"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("ThreadsUnavailable: threads=256: the system has not so many to give")
    assert result.stdout.endswith("\n2\n")


def test_a_forked_child_ends_by_itself(path: Path) -> None:
    """Destructors included: the child has none of the threads that wait on the parent's conditions."""
    code = (
        "import os, sys, time, numpy as np, ebnet\n"
        "images = np.zeros((4, 8, 8, 3), np.uint8); engine = ebnet.load(sys.argv[1], threads=4)\n"
        "expected = engine(images); time.sleep(0.2); child = os.fork()\n"
        "if child == 0:\n"
        "    assert (engine(images) == expected).all(); del engine; sys.exit(7)\n"
        "start = time.monotonic(); status = os.waitpid(child, 0)[1]\n"
        "print(os.waitstatus_to_exitcode(status), time.monotonic() - start)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    status, seconds = result.stdout.split()
    assert status == "7"
    assert float(seconds) < 1.0 * slowness()
