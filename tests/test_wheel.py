"""What is published: a source archive that builds, and a small wheel that works on its own in a clean environment."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.builds import ROOT
from tests.program import commands
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
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone: what is committed, and nothing that lies about in the checkout."""
    if not (ROOT / ".git").exists():
        return ROOT
    place = tmp_path_factory.mktemp("clone") / "ebnet"
    run("git", "clone", "-q", "--depth", "1", ROOT.as_uri(), place)
    return place


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel made from the source archive, as a package index would get it: checked and named for many Linuxes."""
    made, repaired = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("repaired")
    run(sys.executable, "-m", "build", "--no-isolation", "-o", made, clone)
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


def test_the_readme_followed_literally(clone: Path, clean: Path, tmp_path: Path) -> None:
    """Its first section, in an empty folder; the wheel is what `pip install .` would have made of the checkout."""
    section = (clone / "README.md").read_text().partition("## Use a trained network\n")[2].partition("\n## ")[0]
    told = ""
    for language, block in re.findall(r"```(bash|python)\n(.*?)```", section, re.DOTALL):
        if language == "python":
            told += run(clean / "python", "-c", block, cwd=tmp_path)
            continue
        for line in block.replace("pip install .", "").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                told += run(clean / words[0], *words[1:], cwd=tmp_path)
    assert "digits-e4" in told
    assert re.search(r"^\['5', .*\] \[0\.9", told, re.MULTILINE)
    assert (tmp_path / "page" / "index.html").is_file()


GIVEN = {
    "bench": "zoo:digits-e4 --seconds 0.01 --batch 1 --threads 1",
    "data bench": "mnist5k",
    "data fetch": "nowhere",
    "eval": "run",
    "export-onnx": "run -o net.onnx",
    "export-web": "zoo:digits-e4 -o page",
    "import-official": "weights.pth -o net",
    "inspect": "zoo:digits-e4",
    "pack": "run -o net.ebn",
    "predict": "--model digits-e4 digit.png",
    "report": "run",
    "reproduce": "all",
    "search extend": "study",
    "search price": "--paper",
    "search recipe": "study -o winner.toml",
    "search run": "demo --budget bops=2e6 --out study",
    "search show": "study",
    "search worker": "study",
    "serve": "zoo:digits-e4",
    "summary": "1262-2-4:8:8:16",
    "train": "demo",
    "verify": "net.ebn --against run",
    "zoo add": "run --name mine",
    "zoo card": "digits-e4",
}
"""What a command is called with; the others with nothing."""

NONE_NEEDED = (
    "results",
    "reproduce --list",
    "search price --paper",
    "train --list",
    "data list",
    "zoo",
    "summary --paper",
)


def test_every_command_works_or_says_in_one_line_what_it_needs(clean: Path, tmp_path: Path) -> None:
    Image.fromarray(some_digits(10, "val").images[7, :, :, 0]).save(tmp_path / "digit.png")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").touch()
    for command in commands():
        words = [*command.split(), *GIVEN.get(command, "").split()]
        outcome = subprocess.run([clean / "ebnet", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Traceback" not in outcome.stderr, f"{words}: {outcome.stderr}"
        if "this command needs" in outcome.stderr:
            assert re.fullmatch(r'error: this command needs \w+: pip install "ebnet\[[a-z,]+\]"\n', outcome.stderr)


@pytest.mark.parametrize("command", NONE_NEEDED)
def test_what_needs_no_extra(command: str, clean: Path, tmp_path: Path) -> None:
    assert run(clean / "ebnet", *command.split(), cwd=tmp_path)
