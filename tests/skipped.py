"""What was skipped, by reason: the end of a run says what it does not show."""

from collections import Counter
from collections.abc import Iterable

import pytest


def reasons(skipped: Iterable[pytest.TestReport]) -> Counter[str]:
    """How many tests were skipped for each reason."""
    found: Counter[str] = Counter()
    for report in skipped:
        assert isinstance(report.longrepr, tuple)
        found[report.longrepr[2].removeprefix("Skipped: ")] += 1
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counted = reasons(terminalreporter.getreports("skipped"))
    if counted:
        terminalreporter.section(f"{counted.total()} skipped, for {len(counted)} reasons")
        for reason, count in counted.most_common():
            terminalreporter.line(f"{count:5}  {reason}")
