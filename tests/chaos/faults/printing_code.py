"""User code prints a gigabyte."""

from tests.chaos import user_code
from tests.chaos.harness import Round

RAY = True
DOES = """
if not HOARD:
    HOARD.append(True)
    for turn in range(1000):
        os.write(1 + turn % 2, (b"y" * 99 + b"\\n") * 10000)
"""


def run(round: Round) -> None:
    user_code.run_own(round, "prints", DOES)
