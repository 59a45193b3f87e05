"""A clock that a round can set, for the processes that it is given to: Debian's libfaketime."""

from pathlib import Path

from tests.chaos.harness import Round

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
JUMPS = (-400 * 86400, -3 * 86400, -3600, -90, -7, 7, 90, 3600, 3 * 86400, 400 * 86400)
"""Seconds. A lease counts as dead after one minute."""


def missing() -> str | None:
    return None if LIBRARIES else "needs libfaketime: apt-get install faketime"


def environment(round: Round) -> dict[str, str]:
    """Return the variables that give a process the round's clock. The monotonic clock stays right, as it does."""
    _set(round, 0)
    return {
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(_file(round)),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }


def jump(round: Round) -> None:
    seconds = round.random.choice(JUMPS)
    round.note(f"the clock is {seconds} s off")
    _set(round, seconds)


def _set(round: Round, seconds: int) -> None:
    temporary = _file(round).with_suffix(".new")
    temporary.write_text(f"{seconds:+d}\n")
    temporary.replace(_file(round))


def _file(round: Round) -> Path:
    return round.folder / "clock"
