"""Workers and the driver of a real run die at crash points of the store."""

from tests.chaos.harness import Round

ON = ("disk", "s3")
RAY = True


def run(round: Round) -> None:
    # Every process counts the crash points that it passes, so each of the workers that follow one another dies too.
    round.wait(round.sweep(ORCH_CRASH_AT=f"any:{round.random.randint(20, 150)}"))
