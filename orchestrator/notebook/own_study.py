"""A study of one's own, as `orch.sweep` returns it: its progress, results and figure, and a way to continue it."""

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from orch.analysis.cells import WITHIN
from orch.analysis.deciding import Decider
from orch.analysis.results import results
from orch.analysis.results_for_people import for_people
from orch.analysis.study import Study
from orch.core.counted import counted
from orch.core.errors import OrchError, StoreReadOnly
from orch.core.settings import to_dict
from orch.running.display import announce
from orch.running.options import RunOptions
from orch.running.progress import duration
from orch.running.requests import Request
from orch.running.status import read_failures
from orch.store import Store
from orch.store.bundled import BUNDLED
from orch.sweeps.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

    from orch.planning.plan import Plan

_FIRST = ("trial_id", "model", "task", "learning_rate", "init_seed", "validation_accuracy", "ood_accuracy")
"""Columns of `trials` that come first."""


class OwnStudy:
    """The models, tasks and trials of one call of `orch.sweep`, and their results in the store."""

    def __init__(self, request: Request, store: Store):
        self.request, self.store = request, store
        self.stopped = ""
        """Why the last run ended before everything was done; empty if it did not."""

    @property
    def name(self) -> str:
        """The name by which `orch status` and `orch resume` know it."""
        return self.request.sweeps[0]

    @property
    def code(self) -> str:
        """The text that is sent to the workers and kept in the store."""
        return self.request.code[0].files[0][1]

    def run(self, options: RunOptions, decide: str | None = None, confidence: float | None = None) -> Self:
        """Run the trials that have no result; with `decide`, as `orch sweep --decide` does."""
        if self.store.uri == BUNDLED:
            raise StoreReadOnly()
        _import_ray()
        from orch.running.run_sweeps import run_sweeps
        from orch.running.session import warnings_about

        said = announce if not options.quiet else lambda text: None
        decider = None if decide is None else Decider(decide, [self.request], self.store, confidence)
        with _environment_kept():
            summary = run_sweeps([self.request], self.store, options, said, decider)
        self.stopped = summary.stopped
        if summary.left_out:
            said(f"left out: {counted(summary.left_out, 'trial')} of cells that are settled")
        if summary.finished or summary.stopped:
            said(f"{counted(summary.finished, 'trial')} finished in {duration(summary.seconds)}")
        elif not summary.failed:
            said("nothing to do: every trial has its result")
        if summary.failed:
            count = sum(summary.failed.values())
            said(f"failed: {counted(count, 'trial')}: study.failures() shows why, study.resume() retries")
        if summary.stopped:
            said(f"stopped: {summary.stopped}; {counted(summary.left, 'trial')} left: study.resume() continues")
        for line in warnings_about(summary.changes):
            said(line)
        return self

    def resume(self, *, cpus: int | None = None, max_hours: float | None = None, quiet: bool = False) -> Self:
        """Run what is unfinished, from its checkpoints, and retry what failed."""
        return self.run(RunOptions(num_cpus=cpus, max_hours=max_hours, quiet=quiet, ends_process=False))

    def plan(self) -> "Plan":
        """Return its trials with their states."""
        return self.request.plan(self.store)

    def results(self, metric: str = "ood") -> "pd.DataFrame":
        """Return a row for each model and task: the best, and the mean and spread over the seeds of the chosen rate.

        `metric` is ood (accuracy at the test length) or validation; accuracies are 0 at chance and 1 if perfect.
        """
        by = self._distinguishing()
        table = results(self._study, by=by, metric=metric, sweeps=[self.name], scale=self.request.scale)
        frame = table.to_pandas()
        empty = [name for name in ("variant", "remark") if name in frame and not frame[name].fillna("").any()]
        return frame.drop(columns=["cells", *empty], errors="ignore")

    def trials(self) -> "pd.DataFrame":
        """Return a row for each finished trial, without columns that are empty in all of them."""
        ids = {planned.id for planned in self.plan().trials}
        frame = self._study.trials.to_pandas()
        frame = frame[frame["trial_id"].isin(ids)]
        frame = frame.sort_values(["task", "model", "learning_rate", "init_seed"], kind="stable")
        filled = [name for name in frame if frame[name].notna().any()]
        return frame[[*_FIRST, *(name for name in filled if name not in _FIRST)]].reset_index(drop=True)

    def query(self, sql: str, /, **tables: Any) -> "pd.DataFrame":
        """Answer a SQL query over its trials, and over `tables`, which are pandas frames or Arrow tables.

        The views are those of `orch query`: trials, curves, attempts, cells and plan have only what is of this study.
        """
        ids = [planned.id for planned in self.plan().trials if planned.id]
        mine = Study(self.store.location, self.request.catalogue, [self.name], ids)
        return mine.query(sql, self.request.scale, **tables).to_pandas()

    def failures(self) -> "pd.DataFrame":
        """Return a row for each kind of error of trials that failed: how many, the message and the traceback."""
        import pandas as pd

        ids = {planned.id for planned in self.plan().trials}
        rows = []
        for group in read_failures(self.store):
            if mine := sorted(ids.intersection(group.trial_ids)):
                rows.append(
                    {
                        "trials": len(mine),
                        "outcome": str(group.outcome),
                        "message": group.message,
                        "traceback": group.traceback,
                        "trial_ids": mine,
                    }
                )
        return pd.DataFrame(rows, columns=["trials", "outcome", "message", "traceback", "trial_ids"])

    def figure(self) -> Any:
        """Draw accuracy against the number of inputs, a line for each model and a panel for each task.

        Return the matplotlib axes, or an array of them if there are several tasks.
        """
        from orch.notebook.length_figure import draw

        return draw(self.results(), self.trials(), [planned.trial for planned in self.plan().trials])

    @property
    def _study(self) -> Study:
        return Study(self.store.location, self.request.catalogue)

    def _distinguishing(self) -> list[str]:
        """Return the settings by which its cells differ, models and tasks first."""
        groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        derived = True
        for planned in self.plan().trials:
            trial = planned.trial
            derived &= not trial.task.has_modulus
            key = trial.model.name, trial.model.full_summary, trial.task.name
            groups.setdefault(key, []).append(_settings(trial))
        differing: dict[str, None] = {}
        for settings in groups.values():
            differing |= {name: None for name in settings[0] if len({each[name] for each in settings}) > 1}
        if derived:
            differing.pop("modulus", None)
        return ["model", "variant", "task", *differing]

    def _counts(self) -> str:
        counts = self.plan().counts
        parts = [f"{counts['done']:,} of {counted(counts['trials'], 'trial')} done"]
        if counts["failed"]:
            parts.append(f"{counts['failed']:,} failed (study.failures() shows why)")
        if counts["to_do"] or counts["failed"]:
            parts.append("study.resume() continues")
        return ", ".join(parts)

    def __repr__(self) -> str:
        text = f"{self.name} on {self.store.location}: {self._counts()}"
        with contextlib.suppress(OrchError):
            return f"{text}\n{self._shown().to_string(index=False)}"
        return text

    def _repr_html_(self) -> str:
        from html import escape

        text = f"<p><b>{escape(self.name)}</b> on {escape(self.store.location)}: {escape(self._counts())}</p>"
        with contextlib.suppress(OrchError):
            return text + str(self._shown().to_html(index=False, border=0))
        return text

    def _shown(self) -> "pd.DataFrame":
        """Return the results as people read them: the columns of `orch results`, rates as they were written."""
        import pandas as pd

        by = self._distinguishing()
        found = results(self._study, by=by, sweeps=[self.name], scale=self.request.scale)
        return pd.DataFrame(
            [{name: _text(value) for name, value in row.items()} for row in for_people(found, by).to_pylist()]
        )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return format(value, "g") if isinstance(value, float) else str(value)


def _settings(trial: Trial) -> dict[str, Any]:
    """Return the settings of a trial, its task and its model, without those in which trials of a cell differ."""
    found = to_dict(trial) | to_dict(trial.task) | to_dict(trial.model)
    hidden = ("task", "model", *WITHIN)
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in found.items() if key not in hidden
    }


def _import_ray() -> None:
    """Import Ray without its advice on widgets. Raise an error if it runs already: a sweep starts and ends its own."""
    logging.getLogger("ray.widgets").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        import ray.tune
    if ray.is_initialized():
        raise OrchError("Ray is running in this process already: call ray.shutdown() first")


@contextlib.contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore the environment variables at the end: a sweep sets some for Ray and for its workers."""
    before = dict(os.environ)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for name in os.environ.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)
