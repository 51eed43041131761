"""What is published: a source archive that builds, and a small wheel that works on its own in a clean environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.builds import ROOT
from tests.tiny_run import some_digits

MOST_BYTES = 4_000_000

pytestmark = pytest.mark.slow


def run(*command: str | Path, **options: object) -> str:
    outcome = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    assert outcome.returncode == 0, f"{command}: {outcome.stdout[-2000:]}{outcome.stderr[-2000:]}"
    return outcome.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel made from the source archive, as a package index would get it: checked and named for many Linuxes."""
    made, repaired = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("repaired")
    run(sys.executable, "-m", "build", "--no-isolation", "-o", made, ROOT)
    assert len(list(made.glob("*.tar.gz"))) == 1
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (plain,) = made.glob("*.whl")
    run(sys.executable, "-m", "auditwheel", "repair", "-w", repaired, plain, env=os.environ | {"PATH": tools})
    (whole,) = repaired.glob("*.whl")
    return whole


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and what it asks for, nothing else."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    run(sys.executable, "-m", "venv", place)
    run(place / "bin" / "pip", "install", "-q", wheel)
    return place / "bin"


def test_it_is_small_and_for_many_linuxes(wheel: Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    assert re.search(r"manylinux_2_\d+_x86_64", wheel.name) or os.uname().machine != "x86_64"


def test_it_predicts_without_torch(clean: Path, tmp_path: Path) -> None:
    assert "torch" not in run(clean / "pip", "list")
    Image.fromarray(some_digits(10, "val").images[7, :, :, 0]).save(tmp_path / "digit.png")
    assert re.match(r"ebnet \d+\.\d+\.\d+\n", run(clean / "ebnet", "--version"))
    assert "%" in run(clean / "ebnet", "predict", "--model", "digits-e4", "digit.png", cwd=tmp_path)
    lines = "import ebnet; print(ebnet.load('zoo:digits-e4').predict('digit.png').labels[0])"
    label = some_digits(10, "val").labels[7]
    assert run(clean / "python", "-c", lines, cwd=tmp_path) == f"{label}\n"


def test_a_command_that_needs_more_says_what(clean: Path) -> None:
    outcome = subprocess.run([clean / "ebnet", "demo"], capture_output=True, text=True, check=False)
    assert outcome.stderr == 'error: this command needs torch: pip install "ebnet[train]"\n'
