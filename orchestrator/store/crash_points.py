"""Places where a process can be made to die, for tests of recovery. They do nothing unless a test sets a variable.

`ORCH_CRASH_AT=part-written` kills the process the first time it reaches that place, `ORCH_CRASH_AT=part-written:3` the
third time: with SIGKILL, so that no handler and no `finally` runs, as when the machine goes down.
"""

import collections
import os
import signal

_passed: collections.Counter[str] = collections.Counter()


def crash_point(name: str) -> None:
    """Kill this process if `ORCH_CRASH_AT` names this place."""
    wanted, _, nth = os.environ.get("ORCH_CRASH_AT", "").partition(":")
    if wanted == name:
        _passed[name] += 1
        if _passed[name] == int(nth or 1):
            os.kill(os.getpid(), signal.SIGKILL)
