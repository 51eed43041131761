"""The commands that README and documentation show, and what the tests do with each."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

SPAN = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)

ONLY_PARSED = {
    r"ebnet demo": "minutes; tests/report/test_demo.py runs it with a shorter schedule",
    r"ebnet train (?!.*--(list|show))": "trains for minutes to days; tests/train runs small recipes to the end",
    r"ebnet search (?!price)": "trains many networks; tests/search runs small studies to the end",
    r"ebnet serve": "runs until interrupted; tests/serve clicks through it",
    r"ebnet data fetch": "needs the network; tests/data fetches from a server of its own",
    r"ebnet data bench": "measures for seconds; tests/data runs it",
    r"ebnet memory": "measures for seconds; tests/cli runs it",
    r"ebnet import-official": "needs the authors' file; tests/models imports one of the same layout",
    r"ebnet .*\b[A-Z][A-Z0-9_]+\b": "holds a placeholder",
    r"ebnet .*(…|\.\.\.)": "holds a placeholder",
    r"ebnet .*(runs/(?!demo|mine|a\b)|photos|teacher|\.jpe?g|imagenet)": "names what a reader has and a test has not",
}
"""Commands that are checked against the program's options but not run, each with the reason."""


@dataclass(frozen=True)
class Shown:
    """A command line in a document."""

    document: str
    line: str
    in_text: bool = False
    """Named in a sentence, perhaps without its arguments; such commands are parsed."""

    @property
    def reason_not_to_run(self) -> str | None:
        if self.in_text:
            return "named in a sentence"
        return next((why for pattern, why in ONLY_PARSED.items() if re.match(pattern, self.line)), None)

    @property
    def words(self) -> list[str]:
        """The arguments, without what a shell would take for itself."""
        return shlex.split(re.split(r"\s(?:>|\||&&)\s", self.line)[0], comments=True)

    @property
    def output(self) -> str | None:
        """The file that `> FILE` names."""
        found = re.search(r"\s>\s(\S+)", self.line)
        return found[1] if found else None

    def __str__(self) -> str:
        return f"{self.document}: {self.line}"


def shown(*programs: str) -> Iterator[Shown]:
    """Every line of every fenced block, and every piece of code in a sentence, that starts one of the programs."""
    for path in DOCUMENTS:
        text, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        for span in SPAN.findall(FENCE.sub("", text)):
            if span.split(" ")[0] in programs and " " in span:
                yield Shown(name, span, in_text=True)
        for language, block in FENCE.findall(text):
            if language in ("", "bash", "console", "sh", "text"):
                for line in block.replace("\\\n", " ").splitlines():
                    command = re.sub(r"^(\$ |\.venv/bin/)+", "", line.strip())
                    if command.split(" ")[0] in programs:
                        yield Shown(name, re.sub(r"\s+#\s.*$", "", command))
