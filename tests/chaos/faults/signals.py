"""Any signal hits any process of a real run, driver, worker, raylet or gcs, at any moment, also while Ray starts."""

import signal
import time

from tests.chaos.harness import Round

ON = ("disk", "s3")
RAY = True
ROLES = ("driver", "worker", "raylet", "gcs")
SIGNALS = [number for number in range(1, 32) if number not in (signal.SIGCONT, signal.SIGCHLD, signal.SIGWINCH)]
STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def run(round: Round) -> None:
    process = round.sweep(step_seconds=0.2)
    for _ in range(round.random.randint(1, 3)):
        role = round.random.choice(ROLES)
        if round.random.random() < 0.2:
            round.pause(5.0)  # whatever is there by then, Ray is starting
        else:
            round.wait_for(lambda role=role: round.process(role) or not process.running, seconds=60.0)
            round.pause(4.0)
        pid = round.process(role)
        if pid is None:
            continue
        number = signal.Signals(round.random.choice(SIGNALS))
        round.note(f"next for the {role}")
        round.kill(pid, number)
        if number in STOPS:
            time.sleep(round.random.uniform(0.5, 5.0))
            round.kill(pid, signal.SIGCONT)
    round.pause(3.0)
    process.signal(round.random.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, 0)))
    round.wait(process)
