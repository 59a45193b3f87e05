"""Merging: the results of other stores in one, each with the place that it came from.

A trial is known by its id, so a repeated merge adds nothing, and a trial that both stores have keeps the result that is
here. Someone else's code is never taken over: `orch resume` would run it.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from orch.core.errors import DamagedFile, OrchError
from orch.store.damaged_files import StoreWarning
from orch.store.store import Store
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS
from orch.sweeps.trial import TRAINER_REVISION, Trial, parse_config

SOURCE = "source"
"""Column of `trials` with the store that a result was merged from."""
COMPARED = ("stop_reason", "steps_trained", "validation_loss", "validation_accuracy", "ood_accuracy")
"""Columns in which two results of one trial should agree."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The results of one store that another store lacks."""

    source: Store
    trials: pa.Table
    """All finished trials of the source."""
    new_ids: frozenset[str]
    """Ids of the trials that the target lacks."""
    num_different: int
    """Number of trials that both have, with other numbers."""

    @property
    def num_known(self) -> int:
        """Number of trials that the target has already."""
        return int(self.trials.num_rows) - len(self.new_ids)


def open_source(location: str) -> Store:
    """Open someone else's store, which is never changed."""
    return Store(location, read_only=True)


def compare_stores(source: Store, target: Store) -> Merge:
    """Determine what a merge would add. Raise an error if the source is damaged, or no store of ours."""
    if source.uri == target.uri:
        raise OrchError(f"{source.location} cannot be merged into itself: name another store")
    trials = checked_trials(source)
    here = target.read("trials", ["trial_id", *COMPARED]) if target.exists() else None
    known = {} if here is None else {row["trial_id"]: row for row in here.to_pylist()}
    withdrawn = {row["trial_id"] for row in target.read("withdrawn").to_pylist()} if target.exists() else set()
    ids = trials["trial_id"].to_pylist()
    rows = trials.select(["trial_id", *COMPARED]).to_pylist()
    different = sum(row["trial_id"] in known and not _same(row, known[row["trial_id"]]) for row in rows)
    return Merge(source, trials, frozenset(ids) - known.keys() - withdrawn, different)


def checked_trials(source: Store) -> pa.Table:
    """Return the finished trials of a store, or raise an error in one sentence if they cannot be trusted."""
    source.check_exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoreWarning)
        try:
            trials = source.read("trials")
            source.read("curves")
        except StoreWarning as damage:
            raise DamagedFile(f"{damage}: ask for an undamaged copy of the store") from None
    if not trials.num_rows:
        raise OrchError(f"{source.location} has no finished trials: check that it is a store of orch")
    unnamed = trials["trial_id"].null_count + trials["config"].null_count + trials["attempt_id"].null_count
    if unnamed:
        raise OrchError(f"{source.location} has trials without an id or settings: check that it is a store of orch")
    wrong = list(_wrongly_named(trials))
    if wrong:
        raise OrchError(
            f"{len(wrong)} trials of {source.location} do not have the id of their settings, such as {wrong[0]}: it was"
            " edited; ask for the original"
        )
    return trials


def can_be_checked(row: dict[str, object], config: dict[str, dict[str, str]]) -> bool:
    """Return whether a trial is of built-in code, in its present revision."""
    task = BUILT_IN_DEFINITIONS.tasks.get(config["task"]["name"])
    model = BUILT_IN_DEFINITIONS.models.get(config["model"]["name"])
    if task is None or model is None:
        return False
    revisions = (row["task_revision"], row["model_revision"], row["trainer_revision"])
    return revisions == (task.revision, model.revision, TRAINER_REVISION)


def _wrongly_named(trials: pa.Table) -> Iterator[str]:
    """Yield the ids of trials that are not the ids of their settings, as far as their code is built in."""
    columns = ["trial_id", "config", "task_revision", "model_revision", "trainer_revision"]
    for row in trials.select(columns).to_pylist():
        try:
            config = parse_config(row["config"])
            right = not can_be_checked(row, config) or Trial.from_dict(config).id == row["trial_id"]
        except (ValueError, KeyError, TypeError, AttributeError, OrchError):
            right = False
        if not right:
            yield row["trial_id"]


def _same(one: dict[str, object], other: dict[str, object]) -> bool:
    return all(one[name] == other[name] or (one[name] != one[name] and other[name] != other[name]) for name in COMPARED)


def write_merge(merge: Merge, target: Store) -> None:
    """Write what is new: curves first, so that every trial in the store has its curves."""
    if not merge.new_ids:
        return
    wanted = pa.array(sorted(merge.new_ids), pa.string())

    def new(table: pa.Table) -> pa.Table:
        return table.filter(pc.is_in(table["trial_id"], wanted))

    trials = new(merge.trials)
    place = pa.array([merge.source.location] * trials.num_rows, pa.string())
    before = trials[SOURCE] if SOURCE in trials.column_names else pa.nulls(trials.num_rows, pa.string())
    named = pc.coalesce(before, place)
    column = trials.schema.get_field_index(SOURCE)
    trials = trials.append_column(SOURCE, named) if column < 0 else trials.set_column(column, SOURCE, named)
    for trial_id in trials["trial_id"].to_pylist():
        if (weights := merge.source.get_weights(trial_id)) is not None:
            target.put_weights(trial_id, weights)
    target.append("curves", new(merge.source.read("curves")))
    target.append("attempts", new(merge.source.read("attempts")))
    target.append("trials", trials)
