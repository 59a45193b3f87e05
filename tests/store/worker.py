"""Commands that tests run on a store in other processes: `python -m tests.store.worker COMMAND …`"""

import json
import sys
from pathlib import Path

from orch.store import Store
from tests.store.example import POINTS, write_example


def write(location: str, first: str, last: str) -> None:
    store = Store.open(location)
    for seed in range(int(first), int(last)):
        write_example(store, seed, minute=seed)


def compact(location: str) -> None:
    Store.open(location).compact(min_parts=2, rewrite=True)


def compact_until(location: str, stop: str) -> None:
    store = Store.open(location)
    written = 0
    while not Path(stop).exists():
        written += store.compact(min_parts=2).written
    print(written)


def read_until(location: str, stop: str) -> None:
    """Read repeatedly, with an old and a new `Store`, and print every inconsistency found."""
    steady = Store.open(location)
    seen: set[str] = set()
    reads, problems = 0, []
    while not Path(stop).exists():
        for store in (steady, Store.open(location)):
            trials = store.read("trials", ("trial_id",))["trial_id"].to_pylist()
            steps = store.read("curves", ("trial_id", "step")).to_pylist()
            reads += 1
            if len(set(trials)) != len(trials):
                problems.append("a trial was read twice")
            if lost := seen - set(trials):
                problems.append(f"{len(lost)} trials disappeared")
            if len({(row["trial_id"], row["step"]) for row in steps}) != len(steps):
                problems.append("a point of a curve was read twice")
            curves = [row["trial_id"] for row in steps]
            if any(curves.count(trial) != POINTS for trial in trials):
                problems.append("a trial was read without its curve")
            seen |= set(trials)
    print(json.dumps({"reads": reads, "seen": len(seen), "problems": problems}))


def done(location: str) -> None:
    print(json.dumps(sorted(Store.open(location).done())))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
