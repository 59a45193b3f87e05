"""The progress of a run: a live table on a terminal, and plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from orch.core.printable import printable

LINE_SECONDS = 10.0


@dataclass
class ProgressCount:
    """The counts of one sweep."""

    total: int = 0
    done: int = 0
    running: int = 0
    failed: int = 0
    best: float | None = None
    best_label: str = ""

    def expect(self, is_done: bool) -> None:
        """Count one more trial."""
        self.total += 1
        self.done += is_done


@dataclass
class Progress:
    """The counts of each sweep, the rate, the time left and the newest results."""

    counts: dict[str, ProgressCount]
    remaining_seconds: float
    """Estimated worker-seconds of all trials of this run."""
    overall: ProgressCount = field(default_factory=ProgressCount)
    """The counts of all sweeps; a trial that several of them ask for counts once."""
    started: float = field(default_factory=time.monotonic)
    num_finished: int = 0
    newest: list[str] = field(default_factory=list)
    worked: float = 0.0
    """Estimated worker-seconds of the trials that have finished."""

    def finished(self, sweeps: tuple[str, ...], label: str, summary: Mapping[str, Any], estimate: float) -> None:
        self.num_finished += 1
        self.worked += estimate
        for count in self._counting(sweeps):
            count.done += 1
            accuracy = summary["ood_accuracy"]
            if count.best is None or accuracy > count.best:
                count.best, count.best_label = accuracy, label
        text = f"{label}: {summary['validation_accuracy']:.2f}, far {summary['ood_accuracy']:.2f}"
        self.newest = [
            *self.newest[-2:],
            f"{text} ({summary['stop_reason'].replace('_', ' ')}, {summary['steps_trained']:,} steps)",
        ]

    def running(self, sweeps: tuple[str, ...], change: int) -> None:
        for count in self._counting(sweeps):
            count.running += change

    def failed(self, sweeps: tuple[str, ...]) -> None:
        for count in self._counting(sweeps):
            count.failed += 1

    def _counting(self, sweeps: tuple[str, ...]) -> list[ProgressCount]:
        """Return the counts that a trial of these sweeps belongs to."""
        return [self.overall, *(self.counts[name] for name in sweeps)]

    @property
    def rate_per_minute(self) -> float:
        return self.num_finished / max(1e-9, time.monotonic() - self.started) * 60

    @property
    def seconds_left(self) -> float | None:
        """The time left at the current pace; None before a trial has finished."""
        if not self.worked:
            return None
        pace = self.worked / (time.monotonic() - self.started)
        return max(0.0, (self.remaining_seconds - self.worked) / pace)

    def line(self) -> str:
        parts = [f"{self.overall.done:,} of {self.overall.total:,} done", f"{self.overall.running} running"]
        if self.overall.failed:
            parts.append(f"{self.overall.failed} failed")
        parts.append(f"{self.rate_per_minute:.1f} a minute")
        if (left := self.seconds_left) is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)


class Display:
    """Shows a `Progress` at intervals."""

    def __init__(self, progress: Progress, quiet: bool = False):
        self._progress, self._quiet = progress, quiet
        self._line_at = time.monotonic()
        self._live: Any = None
        if sys.stderr.isatty() and not quiet:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def __enter__(self) -> "Display":
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def show(self) -> None:
        if self._live is not None:
            self._guarded(lambda: self._live.update(self._table()))
        elif time.monotonic() - self._line_at > LINE_SECONDS:
            self._line_at = time.monotonic()
            self._guarded(lambda: click.echo(printable(self._progress.line()), err=True))

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""
        text = printable(text)
        if self._live is not None:
            self._guarded(lambda: self._live.console.print(text, markup=False, highlight=False))
        else:
            self._guarded(lambda: click.echo(text, err=True))

    def _guarded(self, output: Callable[[], Any]) -> None:
        """Print, and be silent from then on if the terminal was closed, which must not end the sweep."""
        if not self._quiet:
            try:
                output()
            except OSError:
                self._quiet = True

    def _table(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("sweep", "done", "running", "failed", "best at length", ""):
            table.add_column(name, justify="left" if name in ("sweep", "") else "right")
        for name, count in self._progress.counts.items():
            best = "" if count.best is None else f"{count.best:.2f}"
            failed = Text(str(count.failed), style="red" if count.failed else "dim")
            done = f"{count.done:,}/{count.total:,}"
            table.add_row(
                Text(printable(name)),
                done,
                str(count.running),
                failed,
                best,
                Text(printable(count.best_label), style="dim"),
            )
        newest = [Text(f"  {printable(line)}", style="dim") for line in self._progress.newest]
        return Group(table, Text(printable(self._progress.line())), *newest)


def duration(seconds: float) -> str:
    """Format a duration, such as 45 s, 12 min, 3.5 h or 2.1 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
