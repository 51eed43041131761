"""Every command in README and docs: parsed against the program, and run unless `ONLY_PARSED` says why not."""

import json
import re
import shutil
from pathlib import Path

import click
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.runtime.bench import bench
from tests.docs.commands import ROOT, Shown, shown
from tests.tiny_run import TinyRun, some_digits

COMMANDS = list(shown("ebnet"))
RUN = [command for command in COMMANDS if command.reason_not_to_run is None]


@pytest.fixture(scope="module")
def place(tiny_run: TinyRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory such as the documents assume: after the demo, with a picture and a trained run at hand."""
    directory = tmp_path_factory.mktemp("docs")
    shutil.copytree(tiny_run.run, directory / "demo" / "run")
    for name in ("demo", "a", "mine"):
        shutil.copytree(tiny_run.run, directory / "runs" / name)
    shutil.copy(tiny_run.packed, directory / "demo" / "net.ebn")
    shutil.copy(tiny_run.packed, directory / "net.ebn")
    Image.fromarray(some_digits(10, "val").images[7, :, :, 0]).save(directory / "digit.png")
    (directory / "demo" / "bench.json").write_text(json.dumps(bench(tiny_run.packed, (1,), (1,), None, 0.01).to_dict()))
    return directory


def test_documents_show_commands() -> None:
    assert len(COMMANDS) > 30
    assert len(RUN) > 15
    documents = {command.document for command in COMMANDS}
    assert {"README.md", "docs/index.md", "docs/data.md", "docs/counting.md"} <= documents


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_parses(command: Shown) -> None:
    """Its options exist and have values of the right kind."""
    words = [word for word in command.words[1:] if word not in ("…", "...")]
    context = None
    program: click.Command = typer.main.get_command(app)
    while isinstance(program, click.Group):
        context = click.Context(program, parent=context, info_name=program.name)
        rest = list(words)
        if rest and rest[0] not in program.commands and type(program).__name__ == "RunByDefault":
            rest.insert(0, "run")
        if not rest and command.in_text:
            return
        assert rest, f"{command} names no command"
        assert rest[0] in program.commands, f"there is no command {rest[0]!r}"
        program, words = program.commands[rest[0]], rest[1:]
    try:
        program.make_context(program.name, words, parent=context)
    except click.MissingParameter:
        assert command.in_text, f"{command} lacks an argument"


@pytest.mark.parametrize("command", RUN, ids=str)
def test_runs(command: Shown, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr("ebnet.report.observe.EMBEDDED", 60)  # the t-SNE of all pictures takes seconds
    done = CliRunner().invoke(app, command.words[1:])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    if command.output is not None:
        (place / command.output).write_text(done.stdout)


def test_make_targets_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {command.words[1] for command in shown("make")} | {"demo", "test"}
    assert named <= set(targets)


def test_scripts_exist() -> None:
    """Examples are run by `test_examples`, benchmarks take minutes."""
    named = [word for command in shown("python", "python3") for word in command.words[1:] if word.endswith(".py")]
    assert named
    for script in named:
        assert (ROOT / script).is_file(), script
