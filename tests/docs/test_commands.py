"""Every command in README and docs is executed, but for the few that `table.NOT_RUN` names with a reason."""

import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ebnet.data.fetch import SOURCES
from tests.docs.commands import BEFORE, PROGRAMS, ROOT, Shown, other_blocks, parse, shown
from tests.docs.execute import command_of_make, execute
from tests.docs.scratch import make_place, publish
from tests.docs.table import MADE_BY, NOT_RUN, SHORTER, SLOW, STANDS_FOR
from tests.search import postgres
from tests.tiny_run import TinyRun
from tests.web_site import Site

COMMANDS = shown()
NAMED = [command for command in COMMANDS if command.only_named]
WHOLE = [command for command in COMMANDS if command not in NAMED]


def reason_not_to_run(command: Shown) -> str | None:
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command.line)), None)


class Page:
    """A document's commands in one scratch directory, each run once and after all that come before it."""

    def __init__(self, place: Path, commands: list[Shown], database: Callable[[], str]) -> None:
        self.place, self.commands, self.database = place, commands, database
        self.outcomes: list[BaseException | None] = []

    def outcome(self, command: Shown) -> BaseException | None:
        number = self.commands.index(command)
        while len(self.outcomes) <= number:
            self.outcomes.append(self._run(self.commands[len(self.outcomes)]))
        return self.outcomes[number]

    def _run(self, command: Shown) -> BaseException | None:
        if reason_not_to_run(command) is None:
            try:
                execute(command, self.place, self.database)
            except (Exception, pytest.skip.Exception) as problem:
                return problem
        return None


@pytest.fixture(scope="module")
def database() -> Iterator[Callable[[], str]]:
    with ExitStack() as running:

        @cache
        def address() -> str:
            if postgres.binaries() is None:
                pytest.skip("no PostgreSQL server is installed")
            return running.enter_context(postgres.server())

        yield address


@pytest.fixture(scope="module")
def page(
    tiny_run: TinyRun, database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Page]]:
    """The page of a document, with a web site in place of those that data sets are fetched from."""
    directory, site = tmp_path_factory.mktemp("docs"), Site()

    @cache
    def page_of(document: str) -> Page:
        commands = [command for command in WHOLE if command.document == document]
        place = make_place(directory / Path(document).stem, document, tiny_run)
        if document == "docs/index.md":  # the demo is made from nothing on the first page; here it goes on
            first = page_of("README.md")
            first.outcome(first.commands[0])
            shutil.copytree(first.place / "demo", place / "demo")
        return Page(place, commands, database)

    with pytest.MonkeyPatch.context() as patch:
        for name, sources in publish(site).items():
            patch.setitem(SOURCES, name, sources)
        patch.setenv("EBNET_DATA", str(directory / "data"))
        yield page_of
    site.close()
    shutil.rmtree(directory / "data", ignore_errors=True)  # CIFAR-100 is large, also when it is black


def marked(command: Shown) -> ParameterSet:
    return pytest.param(command, id=str(command), marks=pytest.mark.slow if command.document in SLOW else [])


@pytest.mark.parametrize("command", [marked(command) for command in WHOLE])
def test_runs(command: Shown, page: Callable[[str], Page]) -> None:
    if command.line.startswith("ebnet "):
        assert parse(command), f"{command} lacks an argument"
    problem = page(command.document).outcome(command)
    if problem is not None:
        raise problem
    if (reason := reason_not_to_run(command)) is not None:
        pytest.skip(f"{command.line}: {reason}")


@pytest.mark.parametrize("command", NAMED, ids=str)
def test_named_in_a_sentence(command: Shown) -> None:
    """Without its arguments there is nothing to run, but the command and the options it has must exist."""
    parse(command)


def test_documents_show_commands() -> None:
    assert len(WHOLE) > 100
    assert {"README.md", "docs/index.md", "docs/data.md", "docs/counting.md"} <= {c.document for c in WHOLE}


def test_no_command_hides_in_another_block() -> None:
    """Blocks of commands are marked `bash`: then each of their lines is run."""
    assert [line for line in other_blocks() if re.match(rf"\s*\$? ?{BEFORE}({'|'.join(PROGRAMS)})\s", line[1])] == []


def test_exceptions_are_few_and_tables_have_no_dead_lines() -> None:
    for pattern in [*(change.pattern for change in SHORTER), *NOT_RUN]:
        lines = [*(command.line for command in WHOLE), *MADE_BY.values()]
        assert any(re.match(pattern, line) for line in lines), f"no document has a command like {pattern}"
    for word in STANDS_FOR:
        assert any(word in command.line for command in WHOLE), f"no document says {word}"
    assert len({command.line for command in WHOLE if reason_not_to_run(command)}) <= 4


@pytest.mark.parametrize("line", ["ebnet nothing", "ebnet summary --nothing 1", "ebnet search show --nothing a"])
def test_a_wrong_command_is_noticed(line: str) -> None:
    with pytest.raises(Exception, match=r"no command|[Nn]o such option"):
        parse(Shown("a document", line, in_text=True))


def test_make_runs_what_is_documented() -> None:
    for target, command in MADE_BY.items():
        assert command_of_make(target).endswith(command)
    assert '-c constraints.txt -e ".[dev]"' in (ROOT / "Makefile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "ebnet[all]" in extras["dev"]
