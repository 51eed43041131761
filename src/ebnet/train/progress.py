"""What a person sees of a run: bars with the time left on a terminal, plain lines in a log file, or nothing."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ebnet.recipe.phases import title
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

    def say(self, message: str) -> None:
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def phase_started(self, name: str, start_step: int, steps: int) -> None:
        self.say(f"{name}: {'going on at step ' + str(start_step) if start_step else 'begins'}, {steps} steps in all")

    def stepped(self, step: int, record: dict[str, Any] | None) -> None:
        if record is not None:
            self.say(
                f"{record['stage']} epoch {record['epoch']} step {step}: loss {record['train']['loss']:.4f}, "
                f"lr {record['learning_rate']:.2e}, {record['images_per_second']:.0f} images/s"
            )

    def epoch_finished(self, record: dict[str, Any]) -> None:
        self.say(epoch_line(record))

    def phase_finished(self, result: PhaseResult) -> None:
        origin = f"taken from {result.source}" if result.source else f"trained in {result.seconds:.0f} s"
        self.say(f"{result.name}: done, {origin}, top-1 {result.top1:.2%}")

    def finished(self, result: RunResult) -> None:
        self.console.print(result_table(result))


class TerminalReporter(PlainReporter):
    """Bars for the steps of a phase, lines for its epochs."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._bar: Progress | None = None

    def phase_started(self, name: str, start_step: int, steps: int) -> None:
        self.close()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bar = Progress(*columns, console=self.console, transient=True)
        self._task = self._bar.add_task(name, total=steps, completed=start_step, note="")
        self._bar.start()

    def stepped(self, step: int, record: dict[str, Any] | None) -> None:
        if self._bar is None:
            return
        self._bar.update(self._task, completed=step)
        if record is not None:
            note = f"loss {record['train']['loss']:.3f}, {record['images_per_second']:.0f} images/s"
            self._bar.update(self._task, note=note)

    def phase_finished(self, result: PhaseResult) -> None:
        self.close()
        super().phase_finished(result)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def epoch_line(record: dict[str, Any]) -> str:
    train, val = record["train"], record.get("val")
    terms = ", ".join(f"{name} {value:.4f}" for name, value in train.items() if name != "loss")
    validated = f"; {accuracies(val['top1'], val['top5'])}, loss {val['loss']:.4f}" if val else ""
    return (
        f"{record['stage']} epoch {record['epoch']}: loss {train['loss']:.4f} ({terms}), "
        f"lr {record['learning_rate']:.2e}, {record['images_per_second']:.0f} images/s{validated}"
    )


def accuracies(top1: float, top5: float) -> str:
    """In words; where top-5 leaves out nothing, as with five classes, it says nothing."""
    return f"top-1 {top1:.2%}" + (f", top-5 {top5:.2%}" if top5 < 1 else "")


def result_table(result: RunResult) -> Table:
    """The accuracy of every phase, within 80 columns."""
    phases = result.phases.values()
    columns: dict[str, list[str]] = {
        "phase": [title(phase.name) for phase in phases],
        "top-1 %": [f"{100 * phase.top1:.2f}" for phase in phases],
        "top-5 %": [f"{100 * phase.top5:.2f}" for phase in phases],
        "best top-1 %": [f"{100 * phase.best_top1:.2f}" for phase in phases],
        "epochs": ["given" if phase.source else str(phase.epochs) for phase in phases],
        "images/s": ["" if phase.source else f"{phase.images_per_second:.0f}" for phase in phases],
        "seconds": ["" if phase.source else f"{phase.seconds:.1f}" for phase in phases],
    }
    if all(phase.top5 == 1 for phase in phases):
        del columns["top-5 %"]
    table = Table(title=escape(str(result.out)))
    for column in columns:
        table.add_column(column, justify="left" if column == "phase" else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def make_reporter(console: Console) -> Reporter:
    """Bars where someone is watching."""
    return TerminalReporter(console) if console.is_terminal else PlainReporter(console)
