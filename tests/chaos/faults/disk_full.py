"""The disk is full at a random moment, and some space is made only after the error was told."""

import signal

from tests.chaos import mounts
from tests.chaos.harness import Round

NEEDS = mounts.missing


def run(round: Round) -> None:
    kilobytes = round.random.randint(40, 400)
    with mounts.mounted(round, f"{kilobytes}k"):
        for _ in range(5):
            process = round.plain()
            if round.random.random() < 0.3:
                round.pause(2.0)
                process.signal(signal.SIGKILL)
            if round.wait(process) == 0:
                break
            kilobytes += round.random.randint(20, 300)
            mounts.remount(round, f"size={kilobytes}k")
        mounts.remount(round, "size=100m")
