"""Results grouped by any settings: the scores of finished trials, and how many trials are missing."""

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orch.analysis.aggregate import COLUMNS, METRICS, summarise
from orch.analysis.arrow_tables import column, to_table
from orch.analysis.cells import (
    CHOSEN_AT,
    FAILING,
    PROBLEM,
    STATISTICS,
    VARIANT,
    WITHIN,
    cell_settings,
    failing_of,
    hashable_columns,
    problem,
    statistics_of,
    variant,
)
from orch.analysis.spread import Spread
from orch.analysis.statistics import BEST_OF
from orch.analysis.study import Study
from orch.core.errors import InvalidSettings, OrchError, UnknownName
from orch.core.records import SweepRecord
from orch.core.settings import to_dict
from orch.planning.plan import PlannedTrial, TrialState, make_plan
from orch.store import Store
from orch.store.deduplication import numbers
from orch.store.matching import known_settings, matching_trials
from orch.sweeps.catalogue import BUILT_IN, Catalogue
from orch.sweeps.measured import HORIZON_METRICS, length_of
from orch.sweeps.scales import LAPTOP
from orch.sweeps.trial import TRAINER_REVISION, Trial
from orch.sweeps.where import parse_where
from orch.tasks import REGISTRY, Task

MOST_NAMED = 3
"""Number of mixed settings that a remark names."""
BY = ("model", "variant", "task", "modulus")
"""Settings that results are grouped by, if no others are asked for."""
SCORES = dict(METRICS) | {name: name for name in (*HORIZON_METRICS, "steps_trained", "seconds")}
"""Column of each metric that can be summarised, besides the accuracy at any tested length."""


def _summary_columns(spread: Spread) -> tuple[pa.Field, ...]:
    return (
        column("cells", pa.int64(), "number of cells: trials that differ only in the learning rate and the seeds"),
        column("done", pa.int64(), "finished trials"),
        column("planned", pa.int64(), "trials that the sweeps on this store ask for, and others that are done"),
        column("measured", pa.int64(), "finished trials in which the metric was measured"),
        column("best", pa.float64(), "over learning rates and seeds: the paper's reading; null if not measured"),
        column("chosen_rate", pa.float64(), "the learning rate chosen by the mean accuracy at `chosen_at`"),
        CHOSEN_AT,
        column("mean", pa.float64(), "over the seeds of that learning rate; null if not measured"),
        column(spread.column, pa.float64(), f"{spread.words}, over these seeds; null if there is only one"),
        column("seeds", pa.int64(), "trials finished with that learning rate"),
        *STATISTICS,
        *FAILING,
        column("remark", pa.string(), "what a reader must know: partial, failed or diverged, and what is mixed"),
        column("best_trial", pa.string(), "the trial that has the best"),
    )


@dataclass
class _Group:
    """Trials that share the settings of a row."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the finished trials."""
    cells: dict[tuple[Any, ...], None] = field(default_factory=dict)
    num_missing: int = 0
    num_failed: int = 0


def results(
    study: Study,
    by: Sequence[str] = (),
    where: Collection[str] = (),
    metric: str = "ood",
    sweeps: Sequence[str] = (),
    scale: str = LAPTOP.name,
    spread: Spread = Spread.SD,
    best_of: int = BEST_OF,
) -> pa.Table:
    """Return a row for each combination of the settings `by`: the metric's best and mean, and the seeds that learned.

    By default they are `BY`, with `problem` for the modulus if a task, finished or of the user, has its own words.
    `best_of` is the number of trials of which the expected best is given.

    With `sweeps`, only the trials of these sweeps at this scale count. Without, every trial counts that is finished or
    that a sweep on this store plans. A number is null where the metric was not measured.
    """
    trials = study.trials
    by = by or default_settings(study)
    known = [*(each.name for each in cell_settings(trials)), *WITHIN, VARIANT.name, PROBLEM.name]
    problems = [str(UnknownName("setting", name, known)) for name in by if name not in known]
    problems += _problems_of(metric, trials)
    if best_of < 1:
        problems.append(f"there is no best of {best_of} trials: ask for the best of 1 or more")
    condition = parse_where(where, known_settings(trials, study.catalogue))
    if problems:
        raise InvalidSettings(problems)
    planned = _planned(study.store, sweeps, scale, (), study.catalogue) if sweeps else _planned_by_store(study.store)
    planned = {key: each for key, each in planned.items() if condition.matches(each.trial)}
    if where or sweeps:
        chosen = planned.keys() if sweeps else set(matching_trials(where, trials, study.catalogue))
        mask = [trial_id in chosen for trial_id in trials["trial_id"].to_pylist()]
        trials = trials.take(numbers(np.flatnonzero(mask)))
    names = [each.name for each in cell_settings(trials)]
    score = SCORES.get(metric, metric)
    groups = _grouped(trials, by, names, study.catalogue, planned.values())
    kinds = {each.name: each.type for each in [*trials.schema, VARIANT, PROBLEM]}
    schema = pa.schema([*(pa.field(name, kinds[name]) for name in by), *_summary_columns(spread)])
    ordered = sorted(groups.items(), key=lambda item: [(value is not None, value) for value in item[0]])
    rows = [dict(zip(by, key, strict=True)) | _row(group, names, score, spread, best_of) for key, group in ordered]
    return to_table(rows, schema)


def default_settings(study: Study) -> tuple[str, ...]:
    """Return the settings to group by if none are asked for."""
    finished = set(pc.unique(study.trials["task"]).to_pylist())
    own_words = any(
        task.summary is not Task.summary
        for name, task in study.catalogue.tasks.items()
        if name in finished or name not in REGISTRY
    )
    return tuple(PROBLEM.name if name == "modulus" and own_words else name for name in BY)


def _problems_of(metric: str, trials: pa.Table) -> list[str]:
    """Return what is wrong with a metric: its name is unknown, or no trial was tested at its length."""
    length = length_of(metric)
    if metric in SCORES:
        return []
    lengths = sorted(pc.unique(pc.struct_field(pc.list_flatten(trials["length_curve"]), "length")).to_pylist())
    there_are = ", ".join(f"accuracy_{each}" for each in lengths)
    if length is None:
        return [str(UnknownName("metric", metric, [*SCORES, *(f"accuracy_{each}" for each in lengths)]))]
    if length in lengths:
        return []
    instead = f"use one of {there_are}" if lengths else "no trial has finished yet"
    return [f"accuracy at {length} inputs was not measured in any trial: {instead}"]


def _grouped(
    trials: pa.Table,
    by: Sequence[str],
    names: Sequence[str],
    catalogue: Catalogue,
    planned: Iterable[PlannedTrial],
) -> dict[tuple[Any, ...], _Group]:
    """Group the finished and the planned trials by the settings `by`; `names` are the settings of a cell."""
    groups: dict[tuple[Any, ...], _Group] = {}

    def group_of(settings: Mapping[str, Any]) -> _Group:
        group = groups.setdefault(tuple(settings[name] for name in by), _Group())
        group.cells[tuple(settings[name] for name in names)] = None
        return group

    columns = [*names, *WITHIN]
    values = zip(*hashable_columns(trials.select(columns)), strict=True)
    rows = trials.select([*COLUMNS, "seconds"]).to_pylist()
    for settings, row, config in zip(values, rows, trials["config"].to_pylist(), strict=True):
        known = dict(zip(columns, settings, strict=True))
        known |= {VARIANT.name: variant(config, catalogue), PROBLEM.name: problem(config, catalogue)}
        group_of(known).rows.append(row)
    for each in planned:
        if each.state is not TrialState.DONE:
            group = group_of({**dict.fromkeys(names), **_settings(each.trial)})
            group.num_missing += 1
            group.num_failed += each.state is TrialState.FAILED
    return groups


def _planned_by_store(store: Store) -> dict[str | Trial, PlannedTrial]:
    """Return the trials of all sweeps that were run on a store.

    Sweeps with the user's own code are left out: looking at results must not run code from a store.
    """
    found: dict[str | Trial, PlannedTrial] = {}
    for values in store.list_json("sweeps", SweepRecord).values():
        if not values.get("code"):
            with contextlib.suppress(OrchError):  # the sweep, its scale or a setting no longer exists
                found |= _planned(store, values["sweeps"], values["scale"], values["where"])
    return found


def _planned(
    store: Store, sweeps: Sequence[str], scale: str, where: Collection[str], catalogue: Catalogue = BUILT_IN
) -> dict[str | Trial, PlannedTrial]:
    """Return the trials of these sweeps by id; a trial without an id, which waits for others, is its own key."""
    plan = make_plan(sweeps, scale, where, store, catalogue=catalogue)
    return {each.id or each.trial: each for each in plan.trials}


def _settings(trial: Trial) -> dict[str, Any]:
    """Return the values of a trial in the columns of a table of trials."""
    found = to_dict(trial) | to_dict(trial.task) | to_dict(trial.model)
    found |= {"task": trial.task.name, "model": trial.model.name}
    found |= {VARIANT.name: trial.model.full_summary, PROBLEM.name: trial.task.full_summary}
    found |= {"task_revision": trial.task.revision, "model_revision": trial.model.revision}
    found |= {"trainer_revision": TRAINER_REVISION}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def _row(group: _Group, names: Sequence[str], score: str, spread: Spread, best_of: int) -> dict[str, Any]:
    num_planned = len(group.rows) + group.num_missing
    summary = summarise(group.rows, num_planned, group.num_failed, {score: score}, spread, best_of)
    found = None if summary.scores is None else summary.scores[score]
    mixed = [name for name, values in zip(names, zip(*group.cells, strict=True), strict=True) if len({*values}) > 1]
    alike = len(group.cells) == 1  # trials of several cells are no draws of one thing
    others = [f"{len(mixed) - MOST_NAMED} more"] if len(mixed) > MOST_NAMED else []
    remarks = [summary.remark, f"mixes {', '.join([*mixed[:MOST_NAMED], *others])}" if mixed else ""]
    return {
        "cells": len(group.cells),
        "done": summary.num_done,
        "planned": num_planned,
        "measured": found.num_measured if found else 0,
        "best": found and found.best,
        "chosen_rate": summary.learning_rate,
        "chosen_at": summary.chosen_at,
        "mean": found and found.mean,
        spread.column: found and found.spread,
        "seeds": summary.num_seeds,
        **statistics_of(found if alike else None),
        **failing_of(summary.failing if alike else None),
        "remark": "; ".join(remark for remark in remarks if remark),
        "best_trial": found and found.best_trial,
    }
