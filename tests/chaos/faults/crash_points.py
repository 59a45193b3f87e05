"""A process is killed at a crash point of the store, any of all that it passes, again and again."""

from tests.chaos.harness import Round

ON = ("disk", "s3")
PASSED = 400
"""About as many crash points are passed by one undisturbed run."""


def run(round: Round) -> None:
    for _ in range(8):
        nth = round.random.choice((round.random.randint(1, 40), round.random.randint(1, PASSED)))
        if round.wait(round.plain(crash_at=f"any:{nth}")) == 0:
            return
