"""The state of all sweeps on a store. It is read from the store alone, so from any machine, during or after a sweep."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from orch.core.records import SweepRecord, seconds_groups
from orch.running.progress import time_left
from orch.running.quarantine import read_published
from orch.running.running_trial import RunningTrial
from orch.running.spending import Spent, read_spending
from orch.store import Store
from orch.store.attempts import Event
from orch.store.deduplication import is_among, numbers, one_array, text_array
from orch.store.drivers import DriverRecord, live_drivers
from orch.store.failed_trials import LOST_SIGNATURE, failed_attempts
from orch.usercode.naming import FOLDER

if TYPE_CHECKING:
    from pyarrow import ChunkedArray, Table


@dataclass(frozen=True)
class SweepStatus:
    name: str
    """The names of its sweeps, as other commands accept them."""
    where: str
    scale: str
    total: int
    done: int
    running: int
    failed: int
    to_do: int
    waiting: int
    lost: int = 0
    """Failed trials that were only lost with their driver: `orch resume` continues them."""
    outdated: bool = False
    """True if its file was edited and run again since: its trials are those of the earlier code."""


@dataclass(frozen=True)
class TrialOnWorker:
    """A trial that a worker of a live driver has begun and not ended."""

    trial_id: str
    worker: str
    progress: RunningTrial | None
    """How far it is; None before the worker's first report."""

    @property
    def text(self) -> str:
        told = "" if self.progress is None else f": {self.progress.text}"
        return f"{self.trial_id} on {self.worker}{told}"


@dataclass(frozen=True)
class DistinctTrials:
    """Trials of a store, each counted once, however many sweeps ask for it."""

    running: int = 0
    to_do: int = 0
    """Trials that a sweep asks for, unless it is outdated, and that are neither finished, failed nor running."""
    failed: int = 0
    lost: int = 0
    """Trials counted in `failed` that were only lost with their driver."""


@dataclass(frozen=True)
class StoreStatus:
    location: str
    sweeps: list[SweepStatus]
    distinct: DistinctTrials
    drivers: list[str]
    running: list[TrialOnWorker]
    finished_last_hour: int
    seconds_left: float | None
    quarantined: tuple[str, ...] = ()
    """The places that live drivers keep in quarantine, each with what fails there."""
    spent: Spent = field(default_factory=Spent, compare=False)
    """What the runs have cost, and what everything will. Dollars alone do not make another status."""
    seconds_last_hour: float = field(default=0.0, compare=False)
    """Seconds from the first trial of the last hour to now. Time alone does not make another status."""

    @property
    def workers(self) -> list[str]:
        """A line for each trial in training, with its worker and its progress."""
        return [each.text for each in self.running]

    @property
    def per_hour(self) -> float | None:
        """Trials finished per hour since the first of the last hour; None if it is the only one."""
        later = self.finished_last_hour - 1
        return 3600 * later / self.seconds_last_hour if later > 0 and self.seconds_last_hour > 0 else None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"workers": self.workers}


def read_status(store: Store) -> StoreStatus:
    """Read the counts of each recorded sweep, its live drivers, and an estimate of the time left."""
    alive = live_drivers(store)
    on_workers = _running(store, alive)
    claimed = {each.trial_id for each in on_workers}.union(*(driver.claims for driver in alive))
    trials = store.read("trials", ["trial_id", "finished_at", "seconds"])
    done = trials["trial_id"]
    failing = failed_attempts(store, done, ["error_signature"])
    failed = failing.keys() - claimed
    lost = {trial_id for trial_id in failed if failing[trial_id][-1]["error_signature"] == LOST_SIGNATURE}
    sweeps: list[SweepStatus] = []
    missing_seconds: dict[str, float] = {}
    records = list(store.list_json(FOLDER, SweepRecord).values())
    oldest_first = sorted(records, key=lambda values: str(values.get("at", "")))
    newest = {" ".join(values["sweeps"]): values.get("code") for values in oldest_first}
    for values, (total, missing) in zip(records, _missing(records, done), strict=True):
        outdated = bool(values.get("code")) and values["code"] != newest[" ".join(values["sweeps"])]
        running = missing.keys() & claimed
        not_running = missing.keys() - claimed
        missing_seconds |= {} if outdated else missing
        sweeps.append(
            SweepStatus(
                name=" ".join(values["sweeps"]),
                where=" ".join(values["where"]),
                scale=values["scale"],
                total=total + values["waiting"],
                done=total - len(missing),
                running=len(running),
                failed=len(not_running & failed),
                to_do=len(not_running - failed),
                waiting=values["waiting"],
                lost=len(not_running & lost),
                outdated=outdated,
            )
        )
    finished, worked, elapsed = _last_hour(trials)
    told = [driver.counts.get("seconds_left") for driver in alive]
    if len(told) == 1 and told[0] is not None:
        seconds_left: float | None = float(told[0])  # the figure that the driver itself shows
    else:
        seconds_left = time_left(sum(missing_seconds.values()), worked, elapsed) if alive else None
    return StoreStatus(
        location=store.location,
        sweeps=sweeps,
        distinct=DistinctTrials(
            running=int((~is_among(text_array(claimed), done)).sum()),
            to_do=len(missing_seconds.keys() - claimed - failed),
            failed=len(failed),
            lost=len(lost),
        ),
        drivers=[driver.description for driver in alive],
        quarantined=tuple(f"{place.label}: {why}" for driver in alive for place, why in read_published(driver.counts)),
        running=on_workers,
        finished_last_hour=finished,
        seconds_last_hour=elapsed,
        seconds_left=seconds_left,
        spent=read_spending(store, alive, seconds_left),
    )


def _missing(records: Sequence[Mapping[str, Any]], done: "ChunkedArray") -> list[tuple[int, dict[str, float]]]:
    """Count the trials of each record, and return the seconds of those that have no result, by trial."""
    groups = [(place, *group) for place, values in enumerate(records) for group in seconds_groups(values)]
    lists = pc.split_pattern(text_array(ids for _, _, ids in groups), " ")
    ends = np.cumsum(np.from_dlpack(pc.list_value_length(lists)))
    trial_ids = lists.flatten()
    missing = np.flatnonzero(~is_among(trial_ids, done))
    found: list[tuple[int, dict[str, float]]] = [(0, {}) for _ in records]
    for (place, _, _), count in zip(groups, np.diff(ends, prepend=0).tolist(), strict=True):
        found[place] = (found[place][0] + count, found[place][1])
    of_group = np.searchsorted(ends, missing, side="right").tolist()
    for trial_id, number in zip(trial_ids.take(numbers(missing)).to_pylist(), of_group, strict=True):
        place, seconds, _ = groups[number]
        found[place][1][trial_id] = seconds
    return found


def _last_hour(trials: "Table") -> tuple[int, float, float]:
    """Return the trials finished in the last hour, the worker-seconds they took, and the seconds since the first."""
    now = time.time()
    never = numbers(np.zeros(1))[0]
    times = np.from_dlpack(one_array(pc.fill_null(trials["finished_at"].cast("int64"), never)))
    recent = np.flatnonzero(times > 1e6 * (now - 3600))
    if not len(recent):
        return 0, 0.0, 0.0
    elapsed = now - float(times[recent].min()) / 1e6
    seconds = trials["seconds"].take(numbers(recent)).to_pylist()
    return len(recent), sum(filter(None, seconds)) if elapsed > 1 else 0.0, elapsed


def _running(store: Store, alive: list[DriverRecord]) -> list[TrialOnWorker]:
    """List the attempts of live drivers that have started and not ended, each with its worker and its progress."""
    ids = {driver.driver_id for driver in alive}
    if not ids:
        return []
    told = [RunningTrial.from_dict(each) for driver in alive for each in driver.counts.get("trials", ())]
    progress = {each.trial_id: each for each in told}
    names = ["attempt_id", "trial_id", "driver_id", "event", "worker"]
    table = store.read("attempts", names)
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    ended = {attempt_id for attempt_id, _, _, event, _ in rows if event == Event.END}
    started = {
        attempt_id: TrialOnWorker(trial_id, worker or "", progress.get(trial_id))
        for attempt_id, trial_id, driver_id, event, worker in rows
        if event == Event.START and driver_id in ids and attempt_id not in ended
    }
    return sorted(started.values(), key=lambda each: (each.trial_id, each.worker))


@dataclass(frozen=True)
class FailureGroup:
    """All failed trials whose last failure has the same signature."""

    signature: str
    outcome: str
    trial_ids: list[str]
    attempts: int
    last_at: str
    message: str
    traceback: str

    @property
    def only_lost(self) -> bool:
        """Whether nothing went wrong but the end of their driver, so that the trials will be resumed."""
        return self.signature == LOST_SIGNATURE


def read_failures(store: Store) -> list[FailureGroup]:
    """Return the last failures of trials that have failed, grouped by their signature, the most common first."""
    columns = ("error_signature", "error_message", "traceback")
    failed = failed_attempts(store, store.done(), columns)
    counts = Counter(row["error_signature"] for attempts in failed.values() for row in attempts)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in sorted((attempts[-1] for attempts in failed.values()), key=lambda row: row["at"]):
        groups.setdefault(row["error_signature"], []).append(row)
    found = [
        FailureGroup(
            signature=signature,
            outcome=rows[-1]["outcome"],
            trial_ids=sorted(row["trial_id"] for row in rows),
            attempts=counts[signature],
            last_at=rows[-1]["at"].isoformat(timespec="seconds"),
            message=rows[-1]["error_message"] or "",
            traceback=rows[-1]["traceback"] or "",
        )
        for signature, rows in groups.items()
    ]
    return sorted(found, key=lambda group: -len(group.trial_ids))
