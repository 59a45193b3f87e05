"""The number after ± in a table: the standard deviation, the standard error or a confidence interval of a mean."""

import enum
import functools
import math
from collections.abc import Sequence
from statistics import stdev

from orch.analysis.statistics import CONFIDENCE, bootstrap_mean


class Spread(enum.StrEnum):
    """A measure of how far values lie apart, or of how well they determine their mean."""

    SD = "sd"
    SE = "se"
    CI = "ci"
    BOOTSTRAP = "bootstrap"

    @property
    def heading(self) -> str:
        """The name in the heading of a column."""
        return {Spread.SD: "sd", Spread.SE: "se", Spread.CI: "95% ci", Spread.BOOTSTRAP: "95% bootstrap"}[self]

    @property
    def column(self) -> str:
        """The name of a column of a table for programs."""
        return {Spread.CI: "ci95", Spread.BOOTSTRAP: "bootstrap95"}.get(self, self.value)

    @property
    def words(self) -> str:
        """The name in a sentence."""
        return {
            Spread.SD: "standard deviation",
            Spread.SE: "standard error of the mean",
            Spread.CI: "half the width of the mean's 95% confidence interval, by Student's t",
            Spread.BOOTSTRAP: "half the width of the mean's 95% bootstrap interval",
        }[self]

    def of(self, values: Sequence[float]) -> float | None:
        """Return the spread of some values; None if there are fewer than two."""
        if len(values) < 2:
            return None
        if self is Spread.BOOTSTRAP:
            interval = bootstrap_mean(values)
            return interval and (interval.high - interval.low) / 2
        deviation = stdev(values)
        if self is Spread.SD:
            return deviation
        error = deviation / math.sqrt(len(values))
        return error if self is Spread.SE else error * student_quantile(len(values) - 1)


@functools.cache
def student_quantile(freedom: int) -> float:
    """Return how many standard errors a 95% interval extends to either side, by degrees of freedom.

    >>> [round(student_quantile(freedom), 3) for freedom in (1, 2, 9, 30)]
    [12.706, 4.303, 2.262, 2.042]
    """
    low, high = 0.0, 20.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return the probability that Student's t lies within plus or minus `t` (Abramowitz and Stegun, 26.7.3 and 4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    term, total = (cosine, 0.0) if freedom % 2 else (1.0, 0.0)
    for power in range(freedom % 2, freedom - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if freedom % 2 else total
