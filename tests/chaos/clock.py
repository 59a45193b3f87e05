"""A clock that a round can set, for the processes that it is given to."""

import os
from pathlib import Path

from tests.chaos.harness import Round
from tests.chaos.processes import ROOT

JUMPS = (-400 * 86400, -3 * 86400, -3600, -90, -7, 7, 90, 3600, 3 * 86400, 400 * 86400)
"""Seconds. A lease counts as dead after one minute."""


def environment(round: Round) -> dict[str, str]:
    """Return the variables that give a process the round's clock."""
    _set(round, 0)
    folders = [Path(__file__).with_name("wrong_clock"), ROOT / "src", ROOT]
    return {"PYTHONPATH": os.pathsep.join(map(str, folders)), "ORCH_CHAOS_CLOCK": str(_file(round))}


def jump(round: Round) -> None:
    """Set the clock off by up to a year, in either direction."""
    seconds = round.random.choice(JUMPS)
    round.note(f"the clock is {seconds} s off")
    _set(round, seconds)


def _set(round: Round, seconds: int) -> None:
    temporary = _file(round).with_suffix(".new")
    temporary.write_text(f"{seconds}\n")
    temporary.replace(_file(round))


def _file(round: Round) -> Path:
    return round.folder / "clock"
