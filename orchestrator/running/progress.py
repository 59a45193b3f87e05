"""The progress of a run: its counts, how far running trials are, and the time left."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orch.running.running_trial import RunningTrial

MOST_SHOWN = 5
"""Running trials that are shown one by one."""


def time_left(remaining: float, worked: float, elapsed: float) -> float | None:
    """Return the seconds left, given estimated worker-seconds of work and the time that a part of it took.

    Both are estimates of the same kind, so that an estimate that is wrong by a factor still gives the right time. None
    if nothing was worked yet.
    """
    return max(0.0, remaining) * elapsed / worked if worked > 0 and elapsed > 0 else None


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
    """When the first trial was started."""
    has_begun: bool = False
    num_finished: int = 0
    newest: list[str] = field(default_factory=list)
    worked: float = 0.0
    """Estimated worker-seconds of this run's work on trials that have finished."""
    ended: float = 0.0
    """Estimated worker-seconds of trials that have finished or failed for good."""
    under_way: dict[str, "tuple[RunningTrial, str, float]"] = field(default_factory=dict)
    """The trials in training, each with its label and its estimated worker-seconds."""

    def reported(
        self, trials: Iterable[RunningTrial], labels: Mapping[str, str], estimates: Mapping[str, float]
    ) -> None:
        """Replace what is known about the trials in training."""
        self.under_way = {each.trial_id: (each, labels[each.trial_id], estimates[each.trial_id]) for each in trials}

    def finished(self, sweeps: tuple[str, ...], label: str, summary: Mapping[str, Any], estimate: float) -> None:
        self.num_finished += 1
        before = self.under_way.pop(summary["trial_id"], None)
        self.worked += estimate if before is None else estimate * (1 - before[0].first_step / before[0].steps)
        self.ended += estimate
        accuracy = summary["ood_accuracy"]
        for count in self._counting(sweeps):
            count.done += 1
            if count.best is None or accuracy > count.best:
                count.best, count.best_label = accuracy, label
        text = f"{label}: accuracy {summary['validation_accuracy']:.2f}, at the test length {accuracy:.2f}"
        self.newest = [
            *self.newest[-2:],
            f"{text} ({summary['stop_reason'].replace('_', ' ')}, {summary['steps_trained']:,} steps)",
        ]

    def running(self, sweeps: tuple[str, ...], change: int) -> None:
        if not self.has_begun:
            self.has_begun, self.started = True, time.monotonic()
        for count in self._counting(sweeps):
            count.running += change

    def failed(self, sweeps: tuple[str, ...], estimate: float = 0.0) -> None:
        self.ended += estimate
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
        """The time left at the pace of this run; None before anything is known about it."""
        running = [(trial, estimate) for trial, _, estimate in self.under_way.values()]
        remaining = self.remaining_seconds - self.ended - sum(trial.share_done * each for trial, each in running)
        worked = self.worked + sum(trial.share_done_here * each for trial, each in running)
        return time_left(remaining, worked, time.monotonic() - self.started)

    def running_lines(self) -> list[str]:
        """Return a line for each of the first few trials in training, the most advanced first."""
        ordered = sorted(self.under_way.values(), key=lambda each: -each[0].share_done)
        lines = [f"{label}: {trial.text}" for trial, label, _ in ordered[:MOST_SHOWN]]
        return [*lines, *([f"and {len(ordered) - MOST_SHOWN} more running"] if len(ordered) > MOST_SHOWN else [])]

    def line(self) -> str:
        parts = [f"{self.overall.done:,} of {self.overall.total:,} done", f"{self.overall.running} running"]
        if self.overall.failed:
            parts.append(f"{self.overall.failed} failed")
        if not self.has_begun:
            parts.append("workers are starting")
        elif self.num_finished:
            parts.append(f"{self.rate_per_minute:.1f} a minute")
        if (left := self.seconds_left) is not None and self.overall.done < self.overall.total:
            parts.append(f"{about(left)} left")
        return ", ".join(parts)


def about(seconds: float) -> str:
    """Format an estimated duration, such as "about 45 s", or "under 1 s"."""
    text = duration(seconds)
    return text if text.startswith("under") else f"about {text}"


def duration(seconds: float) -> str:
    """Format a duration, such as 45 s, 12 min, 3.5 h or 2.1 days."""
    if 0 < seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
