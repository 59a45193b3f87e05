"""Places where a process can be made to die, for tests of recovery. Nothing happens unless a test asks for it.

`ORCH_CRASH_AT=part-written` kills the process the first time it reaches that place, `ORCH_CRASH_AT=part-written:3` the
third time: with SIGKILL, so that no handler and no `finally` runs, as when the machine goes down.
"""

import collections
import os
import signal

_passed: collections.Counter[str] = collections.Counter()


def crash_point(name: str) -> None:
    wanted, _, nth = os.environ.get("ORCH_CRASH_AT", "").partition(":")
    if wanted == name:
        _passed[name] += 1
        if _passed[name] == int(nth or 1):
            os.kill(os.getpid(), signal.SIGKILL)
