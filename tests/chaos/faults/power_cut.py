"""The power fails: of all that was not yet synced, any part is on the disk, in any order, and unsynced files are torn.

What a process changes and syncs is written down as it happens (`conditions.journal`). After the kill, changes to a
folder since its last sync are undone or not, by chance, for every name by itself; contents that were never synced are
cut short or turned to zeros. A result that was acknowledged before must survive.
"""

import contextlib
import json
import os
import shutil
import signal
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.harness import Round

Change = dict[str, Any]


def run(round: Round) -> None:
    for turn in range(6):
        kept = round.folder / f"kept-{turn}"
        conditions = (("tests.chaos.conditions:journal", {"root": round.place.root, "kept": str(kept)}),)
        if round.random.random() < 0.5:
            process = round.plain(crash_at=f"any:{round.random.randint(1, 200)}", conditions=conditions)
        else:
            process = round.plain(conditions=conditions)
            round.pause(2.5)
            process.signal(signal.SIGKILL)
        round.wait(process)
        if (kept / "journal").exists():
            undone = cut_power(kept / "journal", round.random)
            round.note(f"undone by the power cut: {undone}")


def cut_power(journal: Path, random: Random) -> int:
    """Undo some of what was not synced; return how many changes were undone."""
    pending, synced = _pending([json.loads(line) for line in journal.read_text().splitlines()])
    _tear(pending, synced, random)
    undone = 0
    for changes in pending.values():
        lasting = random.randint(0, len(changes))
        for change in reversed(changes[lasting:]):
            _undo(change)
            undone += 1
    return undone


def _pending(changes: list[Change]) -> tuple[dict[str, list[Change]], set[str]]:
    """Return the changes of each name that are not surely on the disk, and the files whose contents surely are."""
    pending: dict[str, list[Change]] = defaultdict(list)
    synced: set[str] = set()
    for change in changes:
        path = change["path"]
        if change["change"] == "sync":
            synced.add(path)
            for name in [name for name in pending if os.path.dirname(name) == path]:
                del pending[name]
            continue
        if change["change"] == "create":
            synced.discard(path)
        if change["change"] == "replace":
            synced = (synced - {path}) | ({path} if change["source"] in synced else set())
        pending[path].append(change)
    return pending, synced


def _tear(pending: dict[str, list[Change]], synced: set[str], random: Random) -> None:
    for path, changes in pending.items():
        file = Path(path)
        if changes[-1]["change"] in ("create", "replace") and path not in synced and file.is_file():
            data = file.read_bytes()
            kept = random.randint(0, len(data))
            file.write_bytes(data[:kept] + (bytes(len(data) - kept) if random.random() < 0.5 else b""))


def _undo(change: Change) -> None:
    path = Path(change["path"])
    if change["change"] == "mkdir":
        shutil.rmtree(path, ignore_errors=True)
        return
    if change["change"] == "create":
        path.unlink(missing_ok=True)
        return
    if change["change"] == "replace":
        if Path(change["source"]).exists():
            return  # the process was killed before it was made
        path.unlink(missing_ok=True)
    if change["before"] and not path.exists():
        with contextlib.suppress(FileNotFoundError):
            os.link(change["before"], path)
