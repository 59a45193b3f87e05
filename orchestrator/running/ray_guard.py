"""The guard of a Ray on this machine: a process that ends what the driver leaves behind, however the driver ends.

Ray's processes end with their parents, except for its agents, which live on for minutes. They write to files in the
driver's folder, and all that they and the trials start have it in their environment. The guard waits for the end of its
standard input, which the system closes when the driver ends. It runs alone, as a file: it imports nothing of ours.
"""

import contextlib
import glob
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence

VARIABLE = "ORCH_RAY_FOLDER"
SECONDS = 8.0
SETTLE_SECONDS = 1.0
"""Time for which a Ray whose driver was killed must have no process. One that is being started can be overlooked."""
GOODBYE = b"."
"""Written by a driver that ends in order; without it, the guard says that the driver did not."""


def processes_of(folder: str, parent: int) -> list[int]:
    """Return the processes of this user's Ray in this folder, where the system lists them, without `parent`."""
    mark = f"{VARIABLE}={folder}".encode()
    others = {os.getpid(), parent}
    found = []
    with contextlib.suppress(OSError):
        for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                if number not in others and (_is_marked(number, mark) or _writes_to(number, folder)):
                    found.append(number)
    return found


def children_running(parent: int, programs: Sequence[str]) -> set[int]:
    """Return the children of a process that run one of these programs, where the system lists them.

    Linux may leave out some while another child ends, so a child that is missing here need not have ended.
    """
    found = set()
    for tasks in glob.glob(f"/proc/{parent}/task/*/children"):
        with contextlib.suppress(OSError), open(tasks) as file:
            found |= {number for number in map(int, file.read().split()) if runs(number, programs)}
    return found


def runs(process_id: int, programs: Sequence[str]) -> bool:
    """Return whether a process runs one of these programs. The command line of one that has ended is empty."""
    with contextlib.suppress(OSError), open(f"/proc/{process_id}/cmdline", "rb") as command:
        return os.path.basename(command.read().split(b"\0")[0]).decode(errors="replace") in programs
    return False


def _is_marked(process_id: int, mark: bytes) -> bool:
    with open(f"/proc/{process_id}/environ", "rb") as file:
        return mark in file.read().split(b"\0")


def _writes_to(process_id: int, folder: str) -> bool:
    """Return whether the output of a process goes to the folder. Ray's agents write a title over their environment."""
    return any(os.readlink(f"/proc/{process_id}/fd/{number}").startswith(f"{folder}/") for number in (1, 2))


def end_processes(folder: str, parent: int, settle: float = 0.0) -> None:
    """End the processes of the Ray in this folder, until there have been none for `settle` seconds."""
    last_seen = began = time.monotonic()
    while time.monotonic() < began + SECONDS:
        left = processes_of(folder, parent)
        for process_id in left:
            with contextlib.suppress(OSError):
                os.kill(process_id, signal.SIGKILL)
        if left:
            last_seen = time.monotonic()
        elif time.monotonic() >= last_seen + settle:
            return
        time.sleep(0.1)


def main(folder: str) -> None:
    """Wait for the end of the driver, then end every process of its Ray and remove its folder."""
    driver = os.getppid()
    said = sys.stdin.buffer.read()
    end_processes(folder, driver, settle=0.0 if said else SETTLE_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    if not said:
        print("the driver has ended unexpectedly; the same command continues", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
