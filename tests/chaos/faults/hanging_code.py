"""User code waits forever."""

from tests.chaos import user_code
from tests.chaos.harness import Round

RAY = True
DOES = """
time.sleep(1e6)
"""


def run(round: Round) -> None:
    user_code.run_own(round, "hangs", DOES)
