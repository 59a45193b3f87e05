"""Sweeps of users' files that a store has recorded, as a report shows them without running their code."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from orch.analysis.length_table import LengthTable, length_table
from orch.core.records import seconds_by_trial
from orch.store import Store
from orch.usercode.naming import own_names, recordings


@dataclass(frozen=True, slots=True)
class RecordedSweep:
    """A recorded sweep of a user's file at one scale: its counts, and the accuracy of its finished cells by length."""

    name: str
    scale: str
    title: str
    """Empty if it was recorded before titles were."""
    trial_ids: frozenset[str]
    num_waiting: int
    num_done: int
    num_failed: int
    table: LengthTable

    @property
    def num_planned(self) -> int:
        return len(self.trial_ids) + self.num_waiting


def recorded_sweeps(store: Store, failed: Collection[str], scale: str | None = None) -> list[RecordedSweep]:
    """Return the users' sweeps that were run on a store, at a scale or at any, the newest first.

    A sweep has an entry for each scale. A recording of several sweeps does not say which trial belongs to which, so
    they share one entry.
    """
    groups: dict[tuple[str, str], list[Any]] = {}
    for values in recordings(store):
        if own_names(values) and scale in (None, values["scale"]):
            groups.setdefault((" ".join(values["sweeps"]), values["scale"]), []).append(values)
    done = store.done() if groups else set()
    found = []
    for (name, its_scale), recorded in groups.items():
        # Trials of earlier versions of the file are other trials.
        records = [values for values in recorded if values.get("code") == recorded[0].get("code")]
        ids = frozenset(trial_id for values in records for trial_id in seconds_by_trial(values))
        found.append(
            RecordedSweep(
                name=name,
                scale=its_scale,
                title=", ".join((records[0].get("titles") or {}).values()),
                trial_ids=ids,
                num_waiting=max(values["waiting"] for values in records),
                num_done=len(ids & done),
                num_failed=len((ids & set(failed)) - done),
                table=length_table(store, ids & done),
            )
        )
    return found
