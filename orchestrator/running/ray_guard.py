"""The guard of a Ray on this machine: a process that ends what the driver leaves behind, however the driver ends.

Ray's processes end with their parents, except for its agents, which live on for minutes. All carry the driver's folder
in their environment, and those that the trials have started do, too. The guard waits for the end of its standard input,
which the system closes when the driver ends. It runs alone, as a file: it imports nothing of ours.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

VARIABLE = "ORCH_RAY_FOLDER"
SECONDS = 8.0
GOODBYE = b"."
"""Written by a driver that ends in order; without it, the guard says that the driver did not."""


def processes_of(folder: str) -> list[int]:
    """Return the processes of this user that carry the folder in their environment, where the system lists them."""
    mark = f"{VARIABLE}={folder}".encode()
    found = []
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0") and int(name) != os.getpid():
                    found.append(int(name))
    return found


def main(folder: str) -> None:
    """Wait for the end of the driver, then end every process of its Ray and remove its folder."""
    said = sys.stdin.buffer.read()
    until = time.monotonic() + SECONDS
    while (left := processes_of(folder)) and time.monotonic() < until:
        for process_id in left:
            with contextlib.suppress(OSError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)
    if not said:
        print("the driver has ended unexpectedly; the same command continues", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
