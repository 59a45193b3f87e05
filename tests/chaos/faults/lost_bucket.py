"""Real runs whose bucket answers with errors, loses answers, and falls silent for seconds."""

import time

from tests.chaos.harness import Round, bucket_of

ON = ("s3",)
RAY = True


def run(round: Round) -> None:
    proxy = bucket_of(round.place).proxy
    process = round.sweep(step_seconds=0.2)
    round.wait_for(lambda: round.process("worker") or not process.running)
    proxy.share = round.random.uniform(0.0, 0.15)
    for _ in range(2):
        round.pause(4.0)
        proxy.down = True
        round.note("silence")
        time.sleep(round.random.uniform(0.5, 6.0))
        proxy.down = False
    round.wait(process)
    proxy.share = 0.0
    round.note(f"troubles: {dict(proxy.met)}")
