"""Two or three drivers share the work with --join; some are killed, and others stopped for a while."""

import signal
import time

from tests.chaos.harness import Round

ON = ("disk", "s3")
RAY = True


def run(round: Round) -> None:
    found = [round.sweep("--join", step_seconds=0.2) for _ in range(round.random.choice((2, 2, 3)))]
    for process in found[1:]:
        round.wait_for(lambda process=process: round.process("worker") or not process.running)
        round.pause(5.0)
        if round.random.random() < 0.7:
            round.kill(process.pid, signal.SIGKILL)
        else:
            round.kill(process.pid, signal.SIGSTOP)
            time.sleep(round.random.uniform(1.0, 5.0))
            round.kill(process.pid, signal.SIGCONT)
    for process in found:
        round.wait(process)
