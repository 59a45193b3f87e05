"""The display of a training in this process: progress on standard error, and Ctrl-C between two steps."""

import signal
import time
from typing import Any

from orch.cli._output import echo
from orch.core.counted import counted
from orch.core.interruption import Interrupted, note
from orch.core.printable import printable
from orch.sweeps.result import CurvePoint
from orch.sweeps.trial import Trial


class Interrupt:
    """Records Ctrl-C or SIGTERM, so that training can stop between two steps. A second one raises at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "Interrupt":
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: Any) -> None:
        note(number)
        if self.asked:
            raise Interrupted(number)
        self.asked = True


class Display:
    """A progress bar on a terminal, a line every ten seconds elsewhere, nothing when quiet."""

    def __init__(self, trial: Trial, step: int, quiet: bool):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._bar = console.is_terminal and not quiet
        self._lines = not self._bar and not quiet
        self._shown_at = time.monotonic()
        self._trial = trial
        if self._lines:
            echo(f"{trial.label}: {counted(trial.steps, 'step')} at most", err=True)
        self._progress = Progress(
            TextColumn(printable(trial.label), markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[score]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not self._bar,
        )
        self._id = self._progress.add_task("", total=trial.steps, completed=step, score="")

    def __enter__(self) -> "Display":
        self._progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)

    def step(self, step: int) -> None:
        """Show that this many steps are done; after the last one, that the tests run, which may take longer."""
        if self._bar and step >= self._trial.steps:
            self._progress.update(self._id, completed=step, score="testing")
        elif self._bar and time.monotonic() - self._shown_at > 0.1:
            self._shown_at = time.monotonic()
            self._progress.update(self._id, completed=step)

    def point(self, point: CurvePoint) -> None:
        """Show the scores of a validation."""
        score = f"validation {point.validation_accuracy:.3f}, loss {point.validation_loss:.2g}"
        self._progress.update(self._id, completed=point.step, score=score)
        if self._lines and time.monotonic() - self._shown_at > 10:
            self._shown_at = time.monotonic()
            echo(f"step {point.step:,} of {self._trial.steps:,}: {score}", err=True)
