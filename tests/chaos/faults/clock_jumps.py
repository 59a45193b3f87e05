"""The clock of plain processes jumps by minutes, days and years, back and forth, while they work."""

import signal

from tests.chaos import clock
from tests.chaos.harness import Round


def run(round: Round) -> None:
    for _ in range(2):
        found = [round.plain_command(step_seconds=0.05, **clock.environment(round)) for _ in range(2)]
        for _ in range(3):
            round.pause(3.0)
            clock.jump(round)
        found[0].signal(signal.SIGKILL)
        for process in found:
            round.wait(process)
