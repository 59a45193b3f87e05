"""The records of a store: its JSON files, by folder, with the shape that each must have.

A store may have been written by someone else, or edited. A file that does not have its shape is no record: readers
leave it out, and a `StoreWarning` names it. Values that later versions add to a shape are left alone.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from orch.core.shape import AnyNumber, Count, Name, ProcessId, Seconds


class SweepCell(TypedDict):
    """A cell of a user's sweep, so that it can be shown without running code."""

    model: str
    variant: str
    task: str
    problem: str
    settings: dict[str, Any]
    trials: str | list[str]
    """Ids, separated by spaces; a list of them in records of earlier versions."""


class SweepRecord(TypedDict):
    """`sweeps/<name>.json`: a request for sweeps."""

    sweeps: list[str]
    scale: str
    where: list[str]
    seconds: list[tuple[Seconds, str]] | dict[str, Seconds]
    """Estimated seconds, each with the ids of all trials that take so long; by trial in records of earlier versions."""
    waiting: int
    at: NotRequired[str]
    code: NotRequired[list[Name]]
    """Digests of the code of those sweeps that are not built in."""
    cells: NotRequired[list[SweepCell]]
    titles: NotRequired[dict[str, str] | None]


def group_seconds(by_trial: Mapping[str, float]) -> list[tuple[float, str]]:
    """Return the seconds of trials as they are recorded: a million trials are a few long texts, and read in an instant.

    >>> group_seconds({"a": 2.5, "b": 1.0, "c": 2.5})
    [(2.5, 'a c'), (1.0, 'b')]
    """
    groups: dict[float, list[str]] = {}
    for trial_id, seconds in by_trial.items():
        groups.setdefault(seconds, []).append(trial_id)
    return [(seconds, " ".join(ids)) for seconds, ids in groups.items()]


def seconds_groups(record: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return the estimated seconds of trials of a `SweepRecord`, each with the ids of all trials that take so long."""
    recorded: list[tuple[float, str]] | dict[str, float] = record["seconds"]
    return group_seconds(recorded) if isinstance(recorded, dict) else recorded


def seconds_by_trial(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the estimated seconds of each trial of a `SweepRecord`, by its id.

    >>> seconds_by_trial({"seconds": [[2.5, "a c"], [1.0, "b"]]})
    {'a': 2.5, 'c': 2.5, 'b': 1.0}
    >>> seconds_by_trial({"seconds": {"a": 2.5}})
    {'a': 2.5}
    """
    return {trial_id: seconds for seconds, ids in seconds_groups(record) for trial_id in ids.split()}


def trials_of_cell(cell: Mapping[str, Any]) -> list[str]:
    """Return the ids of the trials of a `SweepCell`.

    >>> trials_of_cell({"trials": "a b"}), trials_of_cell({"trials": ["a", "b"]})
    (['a', 'b'], ['a', 'b'])
    """
    recorded: str | list[str] = cell["trials"]
    return recorded.split() if isinstance(recorded, str) else recorded


class CodeRecord(TypedDict):
    """`code/<digest>.json`: the files of a user, and the revisions of the models and tasks that they define."""

    files: list[tuple[str, str]]
    kept: NotRequired[list[tuple[str, str, int]]]
    models: dict[str, int]
    tasks: dict[str, int]


class KeptRecord(TypedDict):
    """`kept/<name>.json`: a decision of `orch keep`."""

    kind: str
    name: str
    revision: int
    counts_as: int
    at: str


class RatesRecord(TypedDict):
    """`rates/<device>.json`: what `orch doctor` timed."""

    device: str
    ratios: dict[str, Seconds]
    packs: NotRequired[dict[str, dict[str, Seconds]]]
    """Seconds of a step, by kind of model and by size of the pack."""


class RunningRecord(TypedDict):
    """The progress of a trial in training, in the file of its driver."""

    trial_id: str
    step: int
    steps: Count
    first_step: NotRequired[int]
    train_loss: NotRequired[float | None]
    validation_accuracy: NotRequired[float | None]
    label: NotRequired[str]
    curve: NotRequired[list[tuple[int, float | None, float | None]]]


class SickPlace(TypedDict):
    """A place to which a driver gives no more units."""

    node: str
    host: str
    device: str
    why: str


class DriverCounts(TypedDict, total=False):
    """The counts and the progress that a driver publishes about its run."""

    seconds_left: Seconds | None
    trials: list[RunningRecord]
    quarantined: list[SickPlace]


class LeaseRecord(TypedDict):
    """`drivers/<driver id>.json`: a driver at work."""

    driver_id: Name
    host: str
    pid: ProcessId
    started_at: str
    sweeps: str
    beat: AnyNumber
    """The time by the driver's clock, which may be wrong."""
    beats: NotRequired[int]
    number: NotRequired[AnyNumber | None]
    claims: list[str]
    process_start: NotRequired[str | None]
    began: NotRequired[AnyNumber]
    counts: NotRequired[DriverCounts | None]


class SearchLevel(TypedDict):
    """The setting that `orch search --smallest` looks for, and the level that it must reach."""

    name: str
    at_least: float


class SearchQuestion(TypedDict):
    """The question of a search: what is varied, and what counts as better."""

    task: str
    model: str
    fixed: dict[str, Any]
    vary: list[str]
    seeds: int
    metric: str
    objective: Literal["mean", "median", "min", "max"]
    smallest: SearchLevel | None
    grace: int | None
    sampler_seed: int


class SearchRecord(TypedDict):
    """`searches/<id>/search.json`: a search."""

    question: SearchQuestion
    points: int
    at: str
    code: NotRequired[list[Name]]


class PointRecord(TypedDict):
    """`searches/<id>/asked/<point>.json`: a point as it was started."""

    number: int
    params: dict[str, int | float | bool | str]
    to_the_end: bool
    found: list[str]


class PointResultRecord(TypedDict):
    """`searches/<id>/told/<point>.json`: the result of a point."""

    number: int
    params: dict[str, int | float | bool | str]
    state: Literal["finished", "pruned", "invalid", "failed"]
    value: AnyNumber | None
    test: AnyNumber | None
    steps: dict[str, int]
    spent: int
    rungs: list[tuple[int, AnyNumber]]
    message: str
    at: str
