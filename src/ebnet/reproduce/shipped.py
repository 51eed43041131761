"""The verdicts that the package carries, so that they can be read anywhere, without the records and without torch.

They are made from the records of a checkout by `make results`, as are `docs/results.md` and README's line; a test
holds that all of them agree.
"""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Literal

from ebnet.reproduce.tables import Summary, score, summary

SHIPPED = "verdicts.json"
CHAPTERS: tuple[Literal["claims", "why", "second", "short"], ...] = ("claims", "why", "second", "short")
"""The chapters of `ebnet.reproduce.claim` that tell of the paper; pilots only chose set-ups."""


def shipped_verdicts() -> list[Summary]:
    verdicts: list[Summary] = json.loads((files("ebnet") / "reproduce" / SHIPPED).read_text(encoding="utf-8"))
    return verdicts


def named_verdicts(names: list[str]) -> list[Summary]:
    """By the names and numbers that `ebnet reproduce` takes; `all` are the claims where they can show."""
    from ebnet.errors import ConfigError

    everything, found = shipped_verdicts(), []
    for name in names:
        chapter = "claims" if name == "all" else name
        number = [claim for claim in everything if claim["chapter"] == "claims" and str(claim["number"]) == name]
        chosen = number or [claim for claim in everything if name == claim["claim"] or chapter == claim["chapter"]]
        if not chosen:
            known = ", ".join(
                f"{c['number']} {c['claim']}" if c["chapter"] == "claims" else c["claim"] for c in everything
            )
            raise ConfigError(f"no claim is called {name!r}; those are: {known}")
        found += [claim for claim in chosen if claim not in found]
    return found


def verdicts_of(results: Path) -> list[Summary]:
    """From the records: what the package is to carry."""
    from ebnet.reproduce.claim import claim_names, load_claim
    from ebnet.reproduce.records import Records
    from ebnet.reproduce.verdict import judge

    records, found = Records(results), []
    for name in (name for chapter in CHAPTERS for name in claim_names(chapter)):
        told = summary(judge(load_claim(name), records))
        del told["runs"]
        found.append(told)
    return found


def as_text(verdicts: list[Summary]) -> str:
    return "[\n" + ",\n".join(json.dumps(claim) for claim in verdicts) + "\n]\n"


def with_part(page: str, name: str, text: str) -> str:
    """A page with `text` between the marks of a part."""
    return re.sub(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", lambda _: text, page, flags=re.DOTALL)


def readme_of(page: str, results: Path) -> str:
    """README with the opening figure and the score that the records give."""
    from ebnet.reproduce.opening import opening
    from ebnet.reproduce.records import Records

    verdicts = verdicts_of(results)
    told = opening(Records(results), verdicts, "docs/figures")
    page = with_part(page, "opening", f"{told}\n" if told else "")
    return with_part(page, "score", f"{score(verdicts)}\n")


def main() -> None:
    """In a checkout: write what is made from its records."""
    Path("src/ebnet/reproduce", SHIPPED).write_text(as_text(verdicts_of(Path("results"))), encoding="utf-8")
    readme = Path("README.md")
    readme.write_text(readme_of(readme.read_text(encoding="utf-8"), Path("results")), encoding="utf-8")


if __name__ == "__main__":
    main()
