"""The processes below a process, as the kernel lists them: whether they live, what they listen on, what they show."""

import contextlib
import os
from pathlib import Path

LISTENS = "0A"
LOOPBACK = {"7F000001", "00000000000000000000000000000001", "00000000000000000000FFFF7F000001"}


def start_time(process_id: int) -> str | None:
    """Return when a process started, which tells it from a later one of the same number; None if it has ended."""
    with contextlib.suppress(OSError):
        state, *fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        return None if state == "Z" else fields[18]
    return None


def tree(process_id: int) -> dict[int, str]:
    """Return a process and all below it, each with the time at which it started."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found = [process_id]
    for each in found:
        found += children.get(each, ())
    return {each: start for each in found if (start := start_time(each)) is not None}


def still_alive(processes: dict[int, str]) -> list[int]:
    return [each for each, start in processes.items() if start_time(each) == start]


def command_line(process_id: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process_id}/cmdline").read_bytes()
    return b""


def listening_addresses(processes: dict[int, str]) -> list[str]:
    """Return the addresses on which processes listen, in the order of bytes in which they are written."""
    inodes = set()
    for process_id in processes:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{process_id}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(entry.path)
                    if target.startswith("socket:["):
                        inodes.add(target[8:-1])
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in inodes:
                words = fields[1].partition(":")[0]
                found.append("".join(_swapped(words[at : at + 8]) for at in range(0, len(words), 8)))
    return found


def _swapped(word: str) -> str:
    """Return the bytes of a word, which the kernel writes as a number of this machine, in the order of the network."""
    return bytes.fromhex(word)[::-1].hex().upper()


def handles(process_id: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
