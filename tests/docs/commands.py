"""The commands that README and documentation show, in the order of the page."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer
from typer.core import TyperGroup

from ebnet.cli.app import app
from ebnet.cli.search import RunByDefault

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

PROGRAMS = ("./classify", "cmake", "curl", "ebnet", "gcc", "make", "native/emulate/run.sh")
PROGRAMS += ("native/fuzz/run.sh", "pip", "pytest", "python", "python3", "torchrun")
BEFORE = r"(?:(?:\w+=\S+|chrt -f \d+|taskset -c \d+)\s+)*"
"""What may stand before a program: settings of the environment, the scheduler and the core."""

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Shown:
    """A command line in a document."""

    document: str
    line: str
    in_text: bool = False
    """Named in a sentence, perhaps without its arguments."""

    @property
    def program(self) -> str:
        return re.sub(f"^{BEFORE}", "", self.line).split(" ")[0]

    @property
    def words(self) -> list[str]:
        """The arguments, without what a shell would take for itself."""
        return shlex.split(re.split(r"\s(?:>|\||&&)\s", self.line)[0])

    @property
    def output(self) -> str | None:
        """The file that `> FILE` names."""
        found = re.search(r"\s>\s(\S+)", self.line)
        return found[1] if found else None

    @property
    def only_named(self) -> bool:
        """A sentence speaks of the command without all of its arguments: nothing that could be run."""
        return self.in_text and self.line.startswith("ebnet ") and not parse(self)

    def __str__(self) -> str:
        return f"{self.document}: {self.line}"


def shown() -> list[Shown]:
    """Every line of every block of commands, and every piece of code in a sentence that starts a program."""
    found: dict[Shown, None] = {}
    for path in DOCUMENTS:
        text, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        end = 0
        for fence in FENCE.finditer(text):
            found |= dict.fromkeys(_in_sentences(name, text[end : fence.start()]))
            if fence[1] == "bash":
                found |= dict.fromkeys(Shown(name, line) for line in command_lines(fence[2]))
            end = fence.end()
        found |= dict.fromkeys(_in_sentences(name, text[end:]))
    in_blocks = {(one.document, one.line) for one in found if not one.in_text}
    return [one for one in found if not one.in_text or (one.document, one.line) not in in_blocks]


def command_lines(block: str) -> Iterator[str]:
    """The lines of a block without prompts, comments and the directory of the project's own environment."""
    for line in block.replace("\\\n", " ").splitlines():
        command = re.sub(r"^(\$ |\.venv/bin/)+", "", re.sub(r"(^|\s+)#\s.*$", "", line.strip()))
        if command:
            yield re.sub(r"\s{2,}", " ", command)


def other_blocks() -> Iterator[tuple[str, str]]:
    """Every line of every block that is not marked as commands, with the name of its document."""
    for path in DOCUMENTS:
        for language, block in FENCE.findall(path.read_text(encoding="utf-8")):
            if language != "bash":
                yield from ((path.name, line) for line in block.splitlines())


def parse(command: Shown) -> bool:
    """Check a command of `ebnet` against the program: names, options, kinds of values.

    False: arguments are missing, or it is a mere name in a sentence, to which the sentence gives no arguments.
    """
    name, program, words = "ebnet", typer.main.get_command(app), command.words[1:]
    while isinstance(program, TyperGroup):
        if not words:
            return program.invoke_without_command
        if words[0] not in program.commands and isinstance(program, RunByDefault):
            words = ["run", *words]
        assert words[0] in program.commands, f"{command}: there is no command {words[0]!r}"
        name, program, words = words[0], program.commands[words[0]], words[1:]
    try:
        program.make_context(name, list(words))  # the list is used up
    except typer.BadParameter as error:
        if type(error).__name__ != "MissingParameter":
            raise
        return False
    return bool(words) or not command.in_text


def _in_sentences(document: str, text: str) -> Iterator[Shown]:
    for span in SPAN.findall(text):
        line = " ".join(span.split())
        if re.match(rf"{BEFORE}(?:{'|'.join(map(re.escape, PROGRAMS))})\s\S", line):
            yield Shown(document, line, in_text=True)
