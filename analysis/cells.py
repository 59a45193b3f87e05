"""The table of cells: finished trials, grouped by every setting but the learning rate and the seeds."""

import functools
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from orch.analysis.aggregate import COLUMNS, METRICS, Score, summarise
from orch.analysis.arrow_tables import column, to_table
from orch.analysis.statistics import BEST_OF, Share
from orch.core.errors import OrchError
from orch.core.settings import named_value
from orch.store import SCHEMAS
from orch.store.columns import SETTINGS
from orch.store.deduplication import numbers
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import model_from_dict, parse_config, task_from_dict

WITHIN = ("learning_rate", "init_seed", "data_seed")
"""Settings that may differ between the trials of a cell."""
REVISIONS = ("task_revision", "model_revision", "trainer_revision")
VARIANT = column("variant", pa.string(), "settings that distinguish the model from others of its name")
PROBLEM = column("problem", pa.string(), "settings of the task in its own words, such as modulo 5")
CHOSEN_AT = column(
    "chosen_at",
    pa.string(),
    "where learning rates are compared: 100 inputs, or another length well short of the test, or validation; where all"
    " rates are at chance, those clearly worse in validation are left out first",
)

_WORDS = {"validation": "on the validation set", "ood": "at `test_length` inputs"}


def _score_columns(split: str) -> list[pa.Field]:
    where = _WORDS[split]
    return [
        column(
            f"{split}_best", pa.float64(), f"best accuracy {where} over learning rates and seeds: the paper's reading"
        ),
        column(f"{split}_best_trial", pa.string(), "the trial that has it"),
        column(f"{split}_mean", pa.float64(), f"mean accuracy {where} over the seeds of the chosen learning rate"),
        column(f"{split}_spread", pa.float64(), "standard deviation over these seeds; null if there is only one"),
        column(f"{split}_num_measured", pa.int64(), f"finished trials whose accuracy {where} was measured"),
        *(each.with_name(f"{split}_{each.name}") for each in STATISTICS),
    ]


STATISTICS = (
    column(
        "expected_best",
        pa.float64(),
        f"expected best of {BEST_OF} trials, or of as many as were asked for, drawn from the finished ones (Dodge et"
        " al., 2019); null if there are fewer",
    ),
    column("mean_low", pa.float64(), "lower end of the mean's 95% bootstrap interval; null if there is only one seed"),
    column("mean_high", pa.float64(), "upper end of that interval"),
    column("seeds_measured", pa.int64(), "seeds of the chosen learning rate that were measured; null if no accuracy"),
    column("seeds_learned", pa.int64(), "seeds among these that learned: an accuracy of 0.95 or more"),
    column("share_learned", pa.float64(), "their share"),
    column("share_low", pa.float64(), "lower end of that share's 95% Wilson interval"),
    column("share_high", pa.float64(), "upper end of that interval"),
)
"""Columns of the statistics of a score."""
FAILING = (
    column(
        "num_perfect", pa.int64(), "seeds of the chosen learning rate with 0.99 or more in validation; null if none"
    ),
    column("share_failing", pa.float64(), "share of these below 0.95 at `test_length` inputs"),
    column("share_failing_low", pa.float64(), "lower end of that share's 95% Wilson interval"),
    column("share_failing_high", pa.float64(), "upper end of that interval"),
)


def statistics_of(score: Score | None) -> dict[str, float | None]:
    """Return the values of the columns `STATISTICS` for a score."""
    interval, share = (score.mean_interval, score.learned) if score else (None, None)
    values = (
        score and score.expected_best,
        interval and interval.low,
        interval and interval.high,
        *((share.of, share.num, share.value, share.low, share.high) if share else (None,) * 5),
    )
    return {each.name: value for each, value in zip(STATISTICS, values, strict=True)}


def failing_of(share: Share | None) -> dict[str, float | None]:
    """Return the values of the columns `FAILING` for the share of a cell."""
    values = (share.of, share.value, share.low, share.high) if share else (None,) * len(FAILING)
    return {each.name: value for each, value in zip(FAILING, values, strict=True)}


_SUMMARY = pa.schema(
    [
        VARIANT,
        column("num_done", pa.int64(), "finished trials"),
        column(
            "num_diverged",
            pa.int64(),
            "finished trials that diverged; one without a score counts as chance",
        ),
        column("learning_rate", pa.float64(), "the learning rate chosen by the mean accuracy at `chosen_at`"),
        CHOSEN_AT,
        column("num_seeds", pa.int64(), "trials finished with that learning rate"),
        *(field for split in METRICS for field in _score_columns(split)),
        *FAILING,
        column("trial_ids", pa.list_(pa.field("element", pa.string())), "all finished trials of the cell"),
    ]
)


def cell_settings(trials: pa.Table | None = None) -> list[pa.Field]:
    """Return the columns in which the trials of a cell agree, including those of models whose code is not loaded."""
    unknown = [] if trials is None else [field for field in trials.schema if field.name not in SCHEMAS["trials"].names]
    settings = [field for field in [*SETTINGS, *unknown] if field.name not in WITHIN]
    return [*settings, *(SCHEMAS["trials"].field(name) for name in REVISIONS)]


def cells_schema() -> pa.Schema:
    """Return the columns of the table of cells."""
    return pa.schema(_in_order([*cell_settings(), *_SUMMARY]))


def cells_table(trials: pa.Table, definitions: Definitions = BUILT_IN_DEFINITIONS) -> pa.Table:
    """Return every cell that has a finished trial, given a table of trials with all columns."""
    settings = trials.select([field.name for field in cell_settings(trials)])
    members = _members(settings)
    rows = trials.select(COLUMNS).to_pylist()
    configs = trials["config"].to_pylist()
    summaries = [
        {"variant": variant(configs[places[0]], definitions)} | _summary([rows[place] for place in places])
        for places in members
    ]
    found = settings.take(numbers(np.array([places[0] for places in members], np.int64)))
    summarised = to_table(summaries, _SUMMARY)
    fields = _in_order([*found.schema, *_SUMMARY])
    arrays = [(summarised if field.name in _SUMMARY.names else found)[field.name] for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _members(settings: pa.Table) -> list[list[int]]:
    """Group the positions of equal rows."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, values in enumerate(zip(*hashable_columns(settings), strict=True)):
        found.setdefault(values, []).append(place)
    return list(found.values())


def hashable_columns(table: pa.Table) -> list[list[Any]]:
    """Return the values of each column, with lists as tuples, which are hashable."""
    columns = [column.to_pylist() for column in table.columns]
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_list(kind):
            columns[place] = [None if value is None else tuple(value) for value in columns[place]]
    return columns


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    summary = summarise(rows)
    assert summary.scores is not None, "a cell has a finished trial"
    values = {
        name: getattr(summary, name) for name in ("num_done", "num_diverged", "learning_rate", "chosen_at", "num_seeds")
    }
    values["trial_ids"] = [row["trial_id"] for row in rows]
    for split, score in summary.scores.items():
        named = {name: getattr(score, name) for name in ("best", "best_trial", "mean", "spread", "num_measured")}
        values |= {f"{split}_{name}": value for name, value in (named | statistics_of(score)).items()}
    return values | failing_of(summary.failing)


def variant(config: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> str:
    """Return the summary of a trial's model, given the trial's settings as JSON; "" for a model of absent code."""
    return _variant(json.dumps(parse_config(config)["model"]), definitions)


@functools.lru_cache(maxsize=1 << 12)
def _variant(model: str, definitions: Definitions) -> str:
    """Return the summary of a model, cached because thousands of trials share few models."""
    try:
        return model_from_dict(json.loads(model), definitions).full_summary
    except OrchError:
        return ""  # the model, or one of its settings, is unknown here


def problem(config: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> str:
    """Return the summary of a trial's task, given the trial's settings as JSON; its settings if its code is absent."""
    return _problem(json.dumps(parse_config(config)["task"]), definitions)


@functools.lru_cache(maxsize=1 << 12)
def _problem(task: str, definitions: Definitions) -> str:
    settings = json.loads(task)
    try:
        return task_from_dict(settings, definitions).full_summary
    except OrchError:
        others = (named_value(name, value) for name, value in settings.items() if name not in ("name", "modulus"))
        return ", ".join([f"modulo {settings['modulus']}", *others])


def _in_order(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """Sort the columns so that task and model come first."""
    first = ["task", "modulus", "model", "variant"]
    by_name = {field.name: field for field in fields}
    return [by_name[name] for name in dict.fromkeys([*first, *by_name])]
