"""A file system of its own for the store of a round, that can become full or read-only."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.harness import Round


def missing() -> str | None:
    return "needs root, to mount a file system" if os.geteuid() != 0 else None


def remount(round: Round, options: str, seconds: float = 10.0) -> bool:
    """Change the options of the file system; a file that is being written may prevent it for a moment."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        command = ["mount", "-o", f"remount,{options}", round.place.root]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            round.note(f"the disk is {options}")
            return True
        time.sleep(0.01)
    round.note(f"the disk could not be made {options}")
    return False


@contextlib.contextmanager
def mounted(round: Round, size: str) -> Iterator[None]:
    """Mount a file system of this size where the store is; at the end its files are put where it was."""
    root = Path(round.place.root)
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", root], check=True)
    try:
        yield
    finally:
        for process in round.started:
            process.end()
        aside = root.with_name("moved")
        subprocess.run(["cp", "-a", str(root), str(aside)], check=True)
        subprocess.run(["umount", str(root)], check=True)
        root.rmdir()
        aside.rename(root)
