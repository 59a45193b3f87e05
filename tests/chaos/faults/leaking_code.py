"""User code keeps tens of megabytes in every step, up to half a gigabyte."""

from tests.chaos import user_code
from tests.chaos.harness import Round

RAY = True
DOES = """
if len(HOARD) < 30:
    HOARD.append(torch.ones(1 << 22))
"""


def run(round: Round) -> None:
    user_code.run_own(round, "leaks", DOES)
