"""Two processes train and one merges parts all the time; all are killed at random moments or crash points."""

import signal

from tests.chaos.harness import Round

ON = ("disk", "s3")
POINTS = ("part-created", "part-written", "part-renamed", "compacted-written", "part-deleted")


def run(round: Round) -> None:
    for _ in range(3):
        nth = round.random.randint(1, 30)
        compactors = [
            round.plain("compact", crash_at=f"{round.random.choice(POINTS)}:{nth}"),
            round.plain("compact"),
        ]
        workers = [round.plain(step_seconds=0.02) for _ in range(2)]
        round.pause(3.0)
        for process in (*workers, *compactors):
            process.signal(signal.SIGKILL)
            process.wait()
