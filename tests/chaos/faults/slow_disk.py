"""The disk is so slow that processes die in the middle of writing, two at a time."""

import signal

from tests.chaos.harness import Round


def run(round: Round) -> None:
    for _ in range(3):
        seed = round.random.randrange(1 << 30)
        slow = (("tests.chaos.conditions:slow", {"seed": seed, "seconds": 0.05}),)
        found = [round.plain(conditions=slow) for _ in range(2)]
        for process in found:
            round.pause(2.0)
            process.signal(signal.SIGKILL)
            round.wait(process)
