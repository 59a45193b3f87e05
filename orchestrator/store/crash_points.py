"""Places where a process can be made to die, for tests of recovery. They do nothing unless a test sets a variable.

There is one after every step that changes a store: `CRASH_POINTS` lists them. `ORCH_CRASH_AT=part-written` kills the
process the first time it reaches that place, `ORCH_CRASH_AT=part-written:3` the third time, and `ORCH_CRASH_AT=any:17`
at the seventeenth place of all: with SIGKILL, so that no handler and no `finally` runs, as when the machine goes down.
"""

import collections
import os
import signal
import threading

from orch.store.columns import SCHEMAS

MOMENTS = {
    "created": "a hidden file was created in the folder, and is empty",
    "written": "all data is in the hidden file, and on the disk",
    "renamed": "the file has its name, and can be read by everyone",
    "synced": "its folder is on the disk: the file would survive a power cut",
    "deleted": "the file is gone",
}
"""Steps of writing and deleting one file. Those of an upload to an object store are its beginning and its end."""

KINDS = {
    "part": "rows of a table",
    "checkpoint": "an unfinished trial",
    "weights": "a trained model",
    "lease": "a driver's sign of life and its claims",
    "file": "a log, the record of a sweep, user code",
}
"""Kinds of files of a store."""

CRASH_POINTS = {
    f"{kind}-{moment}": f"{what}: {step}" for kind, what in KINDS.items() for moment, step in MOMENTS.items()
}
CRASH_POINTS |= {
    "folder-created": "a missing folder of the store was created",
    "curves-written": "the curves of a finished trial are written, its row is not",
    "trial-written": "the row of a finished trial is written, nothing after it",
    "superseded-written": "rows of later results of finished trials are written, and still among the others",
    "compacted-written": "a merged part is written, and none of those it replaces is deleted",
    "damaged-set-aside": "a damaged file was moved away",
    "abandoned-deleted": "a hidden file that a dead writer left was deleted",
}
"""Every place, with what is true of the store there."""

_passed: collections.Counter[str] = collections.Counter()
_counting = threading.Lock()


def kind_of(path: str) -> str:
    """Return the kind of a file by its path in a store."""
    folder = path.split("/")[0]
    others = {"checkpoints": "checkpoint", "weights": "weights", "drivers": "lease", "superseded": "part"}
    return others.get(folder, "part" if folder in SCHEMAS else "file")


def crash_point(name: str) -> None:
    """Kill this process if `ORCH_CRASH_AT` names this place."""
    assert name in CRASH_POINTS, f"{name} is not listed in CRASH_POINTS"
    wanted, _, nth = os.environ.get("ORCH_CRASH_AT", "").partition(":")
    if wanted in (name, "any"):
        with _counting:
            _passed[wanted] += 1
            if _passed[wanted] == int(nth or 1):
                os.kill(os.getpid(), signal.SIGKILL)
