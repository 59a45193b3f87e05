"""Plain processes get a random signal at a random moment; some are stopped for a while instead, and go on."""

import signal
import time

from tests.chaos.harness import Round

ON = ("disk", "s3")
SIGNALS = [number for number in range(1, 32) if number not in (signal.SIGCONT, signal.SIGCHLD, signal.SIGWINCH)]


def run(round: Round) -> None:
    for _ in range(6):
        process = round.plain(step_seconds=0.01)
        round.pause(2.0)
        number = signal.Signals(round.random.choice(SIGNALS))
        round.note(f"{number.name} to {process.pid}")
        process.signal(number)
        if number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            time.sleep(0.5)
            process.signal(signal.SIGCONT)
        round.pause(1.0)
        process.signal(signal.SIGTERM)
        round.wait(process)
