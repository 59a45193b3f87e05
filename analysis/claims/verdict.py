"""The three verdicts on a claim, and the verdict over several readings of the paper."""

import enum
from collections.abc import Iterable


class Verdict(enum.StrEnum):
    """The answer to whether the evidence supports a claim."""

    SUPPORTED = "supported"
    """Every condition with results holds, and enough conditions have results."""
    CONTRADICTED = "contradicted"
    """A condition is clearly violated."""
    NOT_ENOUGH = "not enough data"
    """Necessary results are missing, or a condition neither holds nor is violated."""


def over_readings(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over readings: the paper means one of them, so all must be contradicted to contradict it."""
    found = set(verdicts)
    if Verdict.SUPPORTED in found:
        return Verdict.SUPPORTED
    return Verdict.CONTRADICTED if found == {Verdict.CONTRADICTED} else Verdict.NOT_ENOUGH
