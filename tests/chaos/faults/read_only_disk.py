"""The disk becomes read-only at a random moment, as after an error of the device, and writable again later."""

from tests.chaos import mounts
from tests.chaos.harness import Round

NEEDS = mounts.missing


def run(round: Round) -> None:
    with mounts.mounted(round, "100m"):
        for _ in range(4):
            process = round.plain(step_seconds=0.02)
            round.pause(2.0)
            mounts.remount(round, "ro")
            round.pause(1.0)
            if round.random.random() < 0.5:
                round.wait(process)
            mounts.remount(round, "rw")
            round.wait(process)
