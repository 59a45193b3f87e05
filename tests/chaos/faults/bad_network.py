"""Requests to the bucket are refused, delayed, answered with errors or cut answers, or done without an answer."""

import signal

from tests.chaos.harness import Round, bucket_of

ON = ("s3",)


def run(round: Round) -> None:
    proxy = bucket_of(round.place).proxy
    for share in (0.02, 0.1, 0.3):
        proxy.share = share * round.random.random()
        process = round.plain()
        if round.random.random() < 0.3:
            round.pause(3.0)
            process.signal(signal.SIGKILL)
        round.wait(process)
    proxy.share = 0.0
    round.note(f"troubles: {dict(proxy.met)}")
