"""The clock of a real run jumps while it works, and a second driver joins whose clock is right."""

from tests.chaos import clock
from tests.chaos.harness import Round

RAY = True


def run(round: Round) -> None:
    process = round.sweep(step_seconds=0.2, **clock.environment(round))
    round.wait_for(lambda: round.process("worker") or not process.running)
    clock.jump(round)
    second = round.sweep("--join", step_seconds=0.2)
    round.pause(5.0)
    clock.jump(round)
    round.wait(process)
    round.wait(second)
