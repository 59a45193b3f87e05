"""How far everything is: read from the store alone, so from any machine, during a sweep or after it."""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orch.planning.plan import failed_trials
from orch.running.failures import ENDED_WELL, LEFT_OFF
from orch.running.lease import OtherDriver, drivers
from orch.store import Outcome, Store


@dataclass(frozen=True)
class SweepStatus:
    name: str
    scale: str
    total: int
    done: int
    running: int
    failed: int
    to_do: int
    waiting: int


@dataclass(frozen=True)
class StoreStatus:
    location: str
    sweeps: list[SweepStatus]
    drivers: list[str]
    workers: list[str]
    finished_last_hour: int
    seconds_left: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_status(store: Store) -> StoreStatus:
    alive = [driver for driver in drivers(store) if driver.alive]
    claimed = frozenset().union(*(driver.claims for driver in alive))
    done, failed = store.done(), failed_trials(store)
    sweeps: list[SweepStatus] = []
    missing_seconds: dict[str, float] = {}
    for values in store.list_json("sweeps").values():
        missing = {key: seconds for key, seconds in values["seconds"].items() if key not in done}
        running = missing.keys() & claimed
        not_running = missing.keys() - claimed
        missing_seconds |= missing
        sweeps.append(
            SweepStatus(
                name=", ".join((*values["sweeps"], *values["where"])),
                scale=values["scale"],
                total=len(values["seconds"]) + values["waiting"],
                done=len(values["seconds"]) - len(missing),
                running=len(running),
                failed=len(not_running & failed),
                to_do=len(not_running - failed),
                waiting=values["waiting"],
            )
        )
    finished, pace = _pace(store)
    seconds_left = sum(missing_seconds.values()) / pace if alive and pace else None
    described = [driver.description for driver in alive]
    return StoreStatus(store.location, sweeps, described, _workers(store, alive), finished, seconds_left)


def _pace(store: Store) -> tuple[int, float | None]:
    """Trials finished in the last hour, and how many worker-seconds of training go by in a second."""
    now = datetime.now(UTC)
    an_hour_ago = now - timedelta(hours=1)
    table = store.read("trials", ["finished_at", "seconds"])
    rows = zip(table["finished_at"].to_pylist(), table["seconds"].to_pylist(), strict=True)
    recent = [(at, seconds or 0.0) for at, seconds in rows if at is not None and at > an_hour_ago]
    if not recent:
        return 0, None
    span = (now - min(at for at, _ in recent)).total_seconds()
    return len(recent), sum(seconds for _, seconds in recent) / span if span > 1 else None


def _workers(store: Store, alive: list[OtherDriver]) -> list[str]:
    """What runs where: attempts of live drivers that have started and not ended."""
    ids = {driver.driver_id for driver in alive}
    if not ids:
        return []
    table = store.read("attempts", ["attempt_id", "trial_id", "driver_id", "event", "worker"])
    started, ended = {}, set()
    for row in table.to_pylist():
        if row["event"] == "end":
            ended.add(row["attempt_id"])
        elif row["driver_id"] in ids:
            started[row["attempt_id"]] = f"{row['trial_id']} on {row['worker']}"
    return sorted(text for attempt, text in started.items() if attempt not in ended)


@dataclass(frozen=True)
class FailureGroup:
    """All open failures with one signature."""

    signature: str
    outcome: str
    trial_ids: list[str]
    attempts: int
    last_at: str
    message: str
    traceback: str


def read_failures(store: Store) -> list[FailureGroup]:
    """Why trials that have no result have none: their last attempts, grouped by what went wrong, most common first."""
    done = store.done()
    alive = {driver.driver_id for driver in drivers(store) if driver.alive}
    attempts: dict[str, dict[str, Any]] = {}
    for row in store.read("attempts").to_pylist():
        if row["event"] == "end" or row["attempt_id"] not in attempts:
            attempts[row["attempt_id"]] = row
    last: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    for row in sorted(attempts.values(), key=lambda row: row["at"]):
        if row["trial_id"] in done:
            continue
        if row["event"] == "start":
            if row["driver_id"] in alive:
                continue
            row |= {
                "outcome": str(Outcome.LOST),
                "error_signature": "lost driver",
                "error_message": "the attempt never ended: its driver and worker are gone",
            }
        if row["outcome"] in ENDED_WELL | LEFT_OFF:
            last.pop(row["trial_id"], None)
            continue
        counts[row["error_signature"]] += 1
        last[row["trial_id"]] = row
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in last.values():
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
