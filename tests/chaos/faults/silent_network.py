"""The bucket falls silent for seconds, again and again: every connection is met with no answer at all."""

import time

from tests.chaos.harness import Round, bucket_of

ON = ("s3",)


def run(round: Round) -> None:
    proxy = bucket_of(round.place).proxy
    process = round.plain(step_seconds=0.02)
    for _ in range(2):
        round.pause(2.0)
        proxy.down = True
        round.note("silence")
        time.sleep(round.random.uniform(0.5, 5.0))
        proxy.down = False
    round.wait(process)
