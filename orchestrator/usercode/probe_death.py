"""The sentence about a process that died while it tried a user's code, with the user's file and line. No torch."""

import re
import signal

from orch.usercode.loading import CODE_FOLDER

CRASH, PLACE = "crash", "place"
"""Files of the fault handler's traceback, and of the line that ran last while lines were watched."""
SECONDS_VARIABLE = "ORCH_PROBE_SECONDS"


def describe_death(crash: str, place: str, subject: str, code: int | None, seconds: float) -> str:
    """Return the sentence, given the contents of the two files and the exit code; None if the process hung."""
    frame = re.search(rf'File "{CODE_FOLDER}[^"]*/([^"/]+)", line (\d+)', crash)
    where = f"{frame[1]}, line {frame[2]}" if frame else place.strip("\0 ")
    prefix = f"{where}: " if where else ""
    if code is None or crash.startswith("Timeout"):
        return (
            f"{prefix}{subject} has not finished a few steps after {seconds:g} s: is it stuck? If it is only slow,"
            f" allow more with {SECONDS_VARIABLE}=600"
        )
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{prefix}{subject} ends its process ({how}), as a crash or os._exit does: fix it"
