"""The tables of a store and their columns, each with a sentence about it (as Arrow field metadata, `description`).

A trial's settings are columns: one for every field that any task, any model or the trial itself has, null
where it does not apply. A new setting is therefore a new column, and earlier parts read as null there, or as the value
that describes earlier results if it is a setting of the trial itself, which every row has. Settings that
only a user's tasks and models have come last. A store that has them is also read without their code: unknown
columns are returned unchanged.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from orch import models, tasks
from orch.core.settings import describe, field_types
from orch.sweeps.definitions import PartType
from orch.sweeps.result import HORIZONS
from orch.sweeps.trial import Trial

TIME = pa.timestamp("us", tz="UTC")
_LENGTH_SCORE = pa.struct(
    [("length", pa.int64()), ("accuracy", pa.float64()), ("accuracy_raw", pa.float64()), ("majority", pa.float64())]
)
_LENGTH_SCORE_OF_ALL = pa.struct([("length", pa.int64()), ("accuracy", pa.float64()), ("accuracy_raw", pa.float64())])
_PLAIN = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}


def _column(name: str, kind: pa.DataType, description: str, past: Any = None) -> pa.Field:
    """Return a column; `past` is what it reads as in parts that were written before it was there."""
    metadata = {"description": description} | ({} if past is None else {"past": json.dumps(past)})
    return pa.field(name, kind, metadata=metadata)


def arrow_type(hint: Any) -> pa.DataType:
    """Return the type of the column for a setting of this type."""
    if isinstance(hint, types.UnionType):
        return arrow_type(next(arm for arm in hint.__args__ if arm is not type(None)))
    if typing.get_origin(hint) is tuple:
        return pa.list_(pa.field("element", arrow_type(hint.__args__[0])))
    return _PLAIN[hint]


def _settings(config_types: Iterable[type]) -> list[pa.Field]:
    """Return one column per field, whichever of the types have it."""
    kinds: dict[str, pa.DataType] = {}
    sentences: dict[str, list[str]] = {}
    for config_type in config_types:
        for field in dataclasses.fields(config_type):
            kind = arrow_type(field_types(config_type)[field.name])
            assert kinds.setdefault(field.name, kind) == kind, f"the setting {field.name} has two types: rename one"
            known = sentences.setdefault(field.name, [])
            known.extend({describe(field)} - {"", *known})
    return [_column(name, kind, "; or: ".join(sentences[name])) for name, kind in kinds.items()]


TASK_SETTINGS, MODEL_SETTINGS = _settings(tasks.REGISTRY.values()), _settings(models.REGISTRY.values())
_TRIAL_SETTINGS = [field for field in dataclasses.fields(Trial) if field.name not in ("task", "model")]
SETTINGS: tuple[pa.Field, ...] = (
    _column("task", pa.string(), "name of the task"),
    _column("model", pa.string(), "name of the model"),
    *TASK_SETTINGS,
    *MODEL_SETTINGS,
    *(
        _column(field.name, arrow_type(field_types(Trial)[field.name]), describe(field), field.metadata.get("past"))
        for field in _TRIAL_SETTINGS
    ),
)

PROVENANCE: tuple[pa.Field, ...] = (
    _column("wall_seconds", pa.float64(), "time from the start of the attempt to its end"),
    _column("device_seconds", pa.float64(), "time the device was occupied, the whole of it for a trial alone"),
    _column("started_at", TIME, "when the attempt started"),
    _column("finished_at", TIME, "when the result was complete, by the clock of its machine"),
    _column("attempt_id", pa.string(), "the attempt that came to this result; the smallest counts"),
    _column("driver_id", pa.string(), "the driver that asked for it"),
    _column("host", pa.string(), "name of the machine it ran on"),
    _column("device", pa.string(), "what it was trained on, such as cpu or the name of a GPU"),
    _column("threads", pa.int64(), "CPU threads it was given"),
    _column(
        "kernel",
        pa.string(),
        "implementation of the model's arithmetic: plain, compiled (compiled-2: a later version, rounded differently)"
        " or, on a GPU, triton or mamba_ssm",
    ),
    _column("mamba_kernel", pa.string(), "which implementation of Mamba's scan was used; null for other models"),
    _column("git_commit", pa.string(), "commit of the code"),
    _column("git_dirty", pa.bool_(), "whether the code had changes beyond that commit"),
    _column("packages", pa.string(), "versions of the packages that matter, as JSON"),
    _column("peak_memory_mb", pa.float64(), "most memory used, in MB"),
    _column("source", pa.string(), "the store that the result was merged from; null if it was made here"),
)

TRIALS = (
    _column("trial_id", pa.string(), "the trial's identity: equal questions have equal ids"),
    *SETTINGS,
    _column("config", pa.string(), "the trial's settings exactly, as JSON"),
    _column("task_revision", pa.int64(), "revision of the task's code"),
    _column("model_revision", pa.int64(), "revision of the model's code"),
    _column("trainer_revision", pa.int64(), "revision of the training code"),
    _column("stop_reason", pa.string(), "why training ended: early_stop, budget or diverged"),
    _column("steps_trained", pa.int64(), "training steps done (`steps` is how many were allowed)"),
    _column("train_loss", pa.float64(), "loss on the training batches before the last validation"),
    _column("validation_loss", pa.float64(), "final loss on the validation set"),
    _column("validation_accuracy", pa.float64(), "final accuracy on the validation set; 0 is chance, 1 is perfect"),
    _column("validation_accuracy_raw", pa.float64(), "final share of right answers on the validation set"),
    _column("ood_accuracy", pa.float64(), "accuracy at `test_length` inputs; 0 is chance, 1 is perfect"),
    _column("ood_accuracy_raw", pa.float64(), "share of right answers at `test_length` inputs"),
    _column("accuracy_100", pa.float64(), "accuracy at 100 inputs; 0 is chance, 1 is perfect; null if not tested"),
    _column("accuracy_200", pa.float64(), "accuracy at 200 inputs; 0 is chance, 1 is perfect; null if not tested"),
    _column(
        "length_curve",
        pa.list_(pa.field("element", _LENGTH_SCORE)),
        "for each tested length: accuracy (0 is chance, 1 is perfect), the share of right answers, and the accuracy of"
        " always giving the commonest answer",
    ),
    _column(
        "validation_accuracy_all",
        pa.float64(),
        "like validation_accuracy, but over all labels of a sample; null if only its end has one (supervision final)",
    ),
    _column(
        "ood_accuracy_all",
        pa.float64(),
        "like ood_accuracy, but over all labels of a sample; null if only its end has one (supervision final)",
    ),
    _column(
        "length_curve_all",
        pa.list_(pa.field("element", _LENGTH_SCORE_OF_ALL)),
        "for each tested length: accuracy (0 is chance, 1 is perfect) and share of right answers over all labels of a"
        " sample; null if only its end has one",
    ),
    *(
        _column(
            f"horizon_{percent}",
            pa.int64(),
            f"longest tested length whose accuracy (0 is chance, 1 is perfect) is at least 0.{percent}, as it is at all"
            " shorter tested lengths; null if the shortest has less, and in results from before this was a column",
        )
        for percent in HORIZONS
    ),
    _column("num_parameters", pa.int64(), "number of the model's parameters"),
    _column("seconds", pa.float64(), "time spent on training and evaluating this trial: its share of the pack's"),
    *PROVENANCE,
)

_CURVES = (
    _column("trial_id", pa.string(), "the trial"),
    _column("attempt_id", pa.string(), "the attempt that trained it"),
    _column("step", pa.int64(), "training steps done"),
    _column("train_loss", pa.float64(), "loss on the training batches since the validation before"),
    _column("validation_loss", pa.float64(), "loss on the validation set"),
    _column("validation_accuracy", pa.float64(), "accuracy on the validation set; 0 is chance, 1 is perfect"),
    _column("seconds", pa.float64(), "time spent on the trial so far"),
    _column("validation_accuracy_all", pa.float64(), "the same over all labels of a sample; null if it has one"),
)

_ATTEMPTS = (
    _column("attempt_id", pa.string(), "the attempt: one try at one trial"),
    _column("trial_id", pa.string(), "the trial"),
    _column("driver_id", pa.string(), "the driver that asked for it"),
    _column("event", pa.string(), "what this row records: start or end"),
    _column("at", TIME, "when that was"),
    _column("host", pa.string(), "name of the machine"),
    _column("pid", pa.int64(), "process on that machine"),
    _column("worker", pa.string(), "the worker that had it"),
    _column("device", pa.string(), "what it was trained on, such as cpu or the name of a GPU"),
    _column("outcome", pa.string(), "how the attempt ended; null at its start"),
    _column("step", pa.int64(), "training steps done by then"),
    _column("error_type", pa.string(), "class of the error, if one ended it"),
    _column("error_signature", pa.string(), "what errors of the same cause have in common"),
    _column("error_message", pa.string(), "the error's message"),
    _column("traceback", pa.string(), "the error's full traceback"),
)

_WITHDRAWN = (
    _column("trial_id", pa.string(), "the trial whose result no longer counts"),
    _column("attempt_id", pa.string(), "the attempt that had come to that result"),
    _column("reason", pa.string(), "why it was withdrawn"),
    _column("at", TIME, "when it was withdrawn"),
)


def _schema(columns: Iterable[pa.Field]) -> pa.Schema:
    names = [column.name for column in columns]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"these settings have the names of other columns: {sorted(twice)}; rename them"
    return pa.schema(columns)


def _user_settings(user_types: Iterable[PartType]) -> list[pa.Field]:
    built_in = {column.name for column in TRIALS}
    return [column for column in _settings(user_types) if column.name not in built_in]


def setting_columns(user_types: Iterable[PartType] = ()) -> list[pa.Field]:
    """Return a column for every setting of the built-in tasks and models, of these and of the trial itself."""
    return [*SETTINGS, *_user_settings(user_types)]


def make_schemas(user_types: Iterable[PartType] = ()) -> Mapping[str, pa.Schema]:
    """Return the schema of each table, where `trials` also has the settings of a user's tasks and models."""
    trials = [*TRIALS, *_user_settings(user_types)]
    tables = {"trials": trials, "curves": _CURVES, "attempts": _ATTEMPTS, "withdrawn": _WITHDRAWN}
    return MappingProxyType({table: _schema(columns) for table, columns in tables.items()})


SCHEMAS = make_schemas()
"""The schemas of a store that has only built-in settings."""

SUPERSEDED = "superseded"
"""A table with the columns of `trials`: later results of trials, which a compaction has moved there out of `trials`."""

KEYS: dict[str, tuple[str, ...]] = {
    "trials": ("trial_id", "attempt_id"),
    "curves": ("trial_id", "attempt_id", "step"),
    "attempts": ("attempt_id", "event"),
    "withdrawn": ("trial_id", "attempt_id"),
    SUPERSEDED: ("trial_id", "attempt_id"),
}
"""The columns that identify a row. Rows that agree in all of them are duplicates, of which the earliest counts."""

TIMES: dict[str, str | None] = {
    "trials": "finished_at",
    "curves": None,
    "attempts": "at",
    "withdrawn": "at",
    SUPERSEDED: "finished_at",
}
"""The column with the time at which a row was made."""
