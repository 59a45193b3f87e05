"""Three processes that know nothing of one another train the same trials at the same time, and two of them die."""

import signal

from tests.chaos.harness import Round

ON = ("disk", "s3")


def run(round: Round) -> None:
    found = [round.plain(pack=round.random.choice((1, 2, 6))) for _ in range(3)]
    for process in found[1:]:
        round.pause(2.0)
        process.signal(signal.SIGKILL)
    for process in found:
        round.wait(process)
