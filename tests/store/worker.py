"""Commands that tests run on a store in other processes: `python -m tests.store.worker COMMAND …`"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from orch.store import Store
from tests.store.example import POINTS, ids, saved, write_example


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


def killed_everywhere(folder: str) -> None:
    """Kill a writer of trials that also merges parts at its first crash point, its second and so on; print the result.

    Writer and reader are forked, and this process reads no rows, so that it has no threads which a fork would lose.
    """
    import pandas  # noqa: F401 — once, and not in every fork
    import pyarrow.json  # noqa: F401

    points, problems = 0, []
    while True:
        root, acknowledged = Path(folder, str(points + 1)), Path(folder, f"{points + 1} acknowledged")
        acknowledged.touch()
        os.environ["ORCH_CRASH_AT"] = f"any:{points + 1}"
        ended = _forked(lambda root=root, acknowledged=acknowledged: _write_and_compact(root, acknowledged))
        if ended != -signal.SIGKILL:
            assert ended == 0
            break
        points += 1
        del os.environ["ORCH_CRASH_AT"]
        done = set(acknowledged.read_text().split())
        if _forked(lambda root=root, done=done: _recover(root, done)) != 0:
            problems.append(f"a crash at the place number {points} is not recovered from")
    print(json.dumps({"points": points, "problems": problems}))


def _write_and_compact(root: Path, acknowledged: Path) -> None:
    store = Store.open(root)
    for seed in range(2):
        store.put_checkpoint("t", saved(b"unfinished"))
        store.put_weights("t", saved(b"trained"))
        trial_id = write_example(store, seed, minute=seed)
        with open(acknowledged, "a") as file:
            print(trial_id, file=file)
        store.delete_checkpoint("t")
    store.compact(min_parts=2)


def _recover(root: Path, acknowledged: set[str]) -> None:
    """Check what a reader finds, repeat the work and check that nothing is lost or doubled."""
    store = Store.open(root)
    found = store.read("trials", ("trial_id",))["trial_id"].to_pylist()
    assert len(found) == len(set(found)), "a trial is read twice"
    assert acknowledged <= set(found), "an acknowledged trial is gone"
    assert store.get_checkpoint("t") in (None, saved(b"unfinished"))
    assert all(store.read("curves")["trial_id"].to_pylist().count(trial_id) == POINTS for trial_id in found)
    for seed in range(2):
        write_example(store, seed, minute=seed)
    store.compact(min_parts=2)
    again = Store.open(root)
    assert again.done() == ids(range(2))
    assert again.read("trials").num_rows == 2
    assert again.read("curves").num_rows == 2 * POINTS


def _forked(function: Callable[[], None]) -> int:
    """Call a function in a fork of this process, and return its exit code: negative for a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
