"""What a person sees of a run: bars with the time left on a terminal, plain lines in a log file, or nothing."""

import time
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ebnet.recipe.phases import PHASE_NAMES, title
from ebnet.runs.results import PhaseResult, RunResult


class Reporter:
    """Says nothing: how a run appears to a program that calls it."""

    def say(self, message: str) -> None:
        """A remark or a warning."""

    def phase_started(self, name: str, start_step: int, steps: int) -> None: ...

    def stepped(self, step: int, record: dict[str, Any] | None) -> None:
        """After each step; `record` is the line written to the metrics, where one was."""

    def epoch_finished(self, record: dict[str, Any]) -> None: ...

    def phase_finished(self, result: PhaseResult) -> None: ...

    def finished(self, result: RunResult) -> None: ...

    def close(self) -> None:
        """The run is over, for whatever reason."""


class PlainReporter(Reporter):
    """One line for each thing that happens; for log files."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._left: TimeLeft | None = None
        self._waiting = ""
        """The line of a step, said when it turns out not to be an epoch's last, whose own line says the same."""

    def say(self, message: str) -> None:
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def phase_started(self, name: str, start_step: int, steps: int) -> None:
        self._left, self._waiting = TimeLeft(start_step, steps), ""
        self.say(f"{shown(name)}: {f'going on at step {start_step}' if start_step else 'begins'}, {steps} steps in all")

    def stepped(self, step: int, record: dict[str, Any] | None) -> None:
        if self._left is not None:
            self._left.stepped(step)
        if self._waiting:
            self.say(self._waiting)
        self._waiting = "" if record is None else step_line(step, record)

    def epoch_finished(self, record: dict[str, Any]) -> None:
        self._waiting = ""
        left = "" if self._left is None else self._left.told()
        self.say(epoch_line(record) + (f"; {left} left of this phase" if left else ""))

    def phase_finished(self, result: PhaseResult) -> None:
        origin = f"taken from {result.source}" if result.source else f"trained in {duration(result.seconds)}"
        self.say(f"{shown(result.name)}: done, {origin}, top-1 {result.top1:.2%}")

    def finished(self, result: RunResult) -> None:
        self.console.print(result_table(result))


class TimeLeft:
    """How long the rest of a phase will take, at the pace so far: of the whole, validation and checkpoints included."""

    def __init__(self, start_step: int, steps: int) -> None:
        self._began, self._first, self._step, self._steps = time.monotonic(), start_step, start_step, steps

    def stepped(self, step: int) -> None:
        self._step = step

    def told(self) -> str:
        """Nothing when there is nothing left, or nothing to judge by."""
        if self._step >= self._steps or self._step <= self._first:
            return ""
        pace = (time.monotonic() - self._began) / (self._step - self._first)
        return duration(pace * (self._steps - self._step))


class TerminalReporter(PlainReporter):
    """A bar with the time left for the steps of a phase, lines for its epochs; all within 80 columns."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._bar: Progress | None = None

    def phase_started(self, name: str, start_step: int, steps: int) -> None:
        self.close()
        self._left = TimeLeft(start_step, steps)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bar = Progress(*columns, console=self.console, transient=True)
        self._task = self._bar.add_task(shown(name), total=steps, completed=start_step, note="")
        self._bar.start()

    def stepped(self, step: int, record: dict[str, Any] | None) -> None:
        if self._bar is None:
            return
        if self._left is not None:
            self._left.stepped(step)
        self._bar.update(self._task, completed=step)
        if record is not None:
            note = f"loss {record['train']['loss']:.3f}, {record['images_per_second']:.0f} img/s"
            self._bar.update(self._task, note=note)

    def phase_finished(self, result: PhaseResult) -> None:
        self.close()
        super().phase_finished(result)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def duration(seconds: float) -> str:
    """`40 s`, `3 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def shown(name: str) -> str:
    """A phase as a page calls it."""
    return next((title(phase) for phase in PHASE_NAMES if phase == name), name)


def step_line(step: int, record: dict[str, Any]) -> str:
    return (
        f"{shown(record['stage'])}, epoch {record['epoch'] + 1}, step {step}: loss {record['train']['loss']:.4f}, "
        f"rate {record['learning_rate']:.2e}, {record['images_per_second']:.0f} images/s"
    )


def epoch_line(record: dict[str, Any]) -> str:
    """What was reached comes first: the line may be longer than a terminal is wide."""
    train, val = record["train"], record.get("val")
    terms = ", ".join(f"{name} {value:.4f}" for name, value in train.items() if name != "loss")
    validated = f"{accuracies(val['top1'], val['top5'])}, loss {val['loss']:.4f}; " if val else ""
    return (
        f"{shown(record['stage'])}, epoch {record['epoch'] + 1}: {validated}"
        f"training loss {train['loss']:.4f} ({terms}), rate {record['learning_rate']:.2e}, "
        f"{record['images_per_second']:.0f} images/s"
    )


def accuracies(top1: float, top5: float) -> str:
    """In words; where top-5 leaves out nothing, as with five classes, it says nothing."""
    return f"top-1 {top1:.2%}" + (f", top-5 {top5:.2%}" if top5 < 1 else "")


def result_table(result: RunResult) -> Table:
    """The accuracy of every phase, within 80 columns."""
    phases = result.phases.values()
    experts = max((len(shares) for phase in phases for shares in phase.usage.values()), default=None)
    columns: dict[str, list[str]] = {
        "phase": [title(phase.name, experts) for phase in phases],
        "top-1 %": [f"{100 * phase.top1:.2f}" for phase in phases],
        "top-5 %": [f"{100 * phase.top5:.2f}" for phase in phases],
        "best %": [f"{100 * phase.best_top1:.2f}" for phase in phases],
        "epochs": ["given" if phase.source else str(phase.epochs) for phase in phases],
        "images/s": ["" if phase.source else f"{phase.images_per_second:.0f}" for phase in phases],
        "time": ["" if phase.source else duration(phase.seconds) for phase in phases],
    }
    if all(phase.top5 == 1 for phase in phases):
        del columns["top-5 %"]
    table = Table(title=escape(str(result.out)), box=SIMPLE, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column == "phase" else "right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def make_reporter(console: Console) -> Reporter:
    """Bars where someone is watching."""
    return TerminalReporter(console) if console.is_terminal else PlainReporter(console)
