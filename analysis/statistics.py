"""The statistics of few seeds, whose results are mostly either learned or at chance.

A mean and a deviation describe such results badly, and a best grows with the number of trials. So there are: the share
of seeds that learn, with Wilson's interval; the expected best of a fixed number of trials; a mean with a bootstrap
interval; the share of seeds that hold, by length. `docs/statistics.md` has the formulas, their sources and what they
mean with three seeds. Every number is over what was measured, and None if that is nothing.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
HALF = 0.5
"""The share of seeds that separates what most seeds do from what they do not."""
BEST_OF = 3
"""Number of trials of which the expected best is given, unless another is asked for."""
PERFECT = 0.99
"""Lowest accuracy that counts as perfect at the lengths trained on."""
RESAMPLES = 4000
MOST_ENUMERATED = 5
"""Largest number of values of which every resample is taken (5 to the power of 5 are 3,125) instead of random ones."""


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def wilson(num: int, of: int, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's score interval (1927) of a share, given how many `of` so many had the property.

    It contains every share that a two-sided score test does not reject.

    >>> [tuple(round(end, 2) for end in wilson(num, of)) for num, of in ((3, 3), (5, 5), (2, 5))]
    [(0.44, 1.0), (0.57, 1.0), (0.12, 0.77)]
    """
    assert 0 <= num <= of, "a share is of at least as many"
    assert of > 0, "nothing has no share"
    z, share = _z(confidence), num / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    # At the ends the formula is exactly 0 or 1, but for rounding.
    return Interval(0.0 if num == 0 else middle - half, 1.0 if num == of else middle + half)


@functools.cache
def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(HALF + confidence / 2)


@dataclass(frozen=True, slots=True)
class Share:
    """The number of seeds, or of anything else, that have a property."""

    num: int
    of: int
    confidence: float = CONFIDENCE

    @classmethod
    def at_least(cls, values: Iterable[float | None], level: float, confidence: float = CONFIDENCE) -> "Share | None":
        """Return how many of the known values reach a level; None if none is known."""
        known = [value for value in values if value is not None]
        return cls(sum(value >= level for value in known), len(known), confidence) if known else None

    @property
    def value(self) -> float:
        return self.num / self.of

    @property
    def interval(self) -> Interval:
        """Wilson's confidence interval of the share."""
        return wilson(self.num, self.of, self.confidence)

    @property
    def low(self) -> float:
        return self.interval.low

    @property
    def high(self) -> float:
        return self.interval.high

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes one half, so that most seeds have the property or most do not."""
        return not self.low <= HALF <= self.high

    @property
    def more(self) -> int | None:
        """Further seeds after which the interval excludes one half, if the share stays; None if it is one half."""
        needed = seeds_to_exclude(self.value, self.confidence)
        return None if needed is None else max(0, needed - self.of)

    def __str__(self) -> str:
        return f"{self.num} of {self.of} ({self.low:.2f}–{self.high:.2f})"


def seeds_to_exclude(share: float, confidence: float = CONFIDENCE, level: float = HALF) -> int | None:
    """Return the number of seeds from which Wilson's interval around a share excludes a level; None if it is the level.

    >>> [seeds_to_exclude(share) for share in (1.0, 0.75, 0.6, 0.5)]
    [4, 16, 97, None]
    """
    if share == level:
        return None
    # Wilson's interval excludes a level exactly if the score test rejects it.
    return math.floor(_z(confidence) ** 2 * level * (1 - level) / (share - level) ** 2) + 1


def expected_best(values: Sequence[float], of: int = BEST_OF, lowest: bool = False) -> float | None:
    """Return the expected best of `of` trials drawn from these, with replacement (Dodge et al., 2019).

    None if there are fewer values than that: what more trials would have reached is not known. `lowest` if the lowest
    value is the best.

    >>> expected_best([0.0, 1.0], of=1), expected_best([0.0, 1.0], of=2), expected_best([1.0], of=2)
    (0.5, 0.75, None)
    """
    if of < 1 or len(values) < of:
        return None
    ordered, number = sorted(values, reverse=lowest), len(values)
    shares = [(place / number) ** of for place in range(number + 1)]
    terms = zip(ordered, itertools.pairwise(shares), strict=True)
    expected = math.fsum(value * (after - before) for value, (before, after) in terms)
    return min(max(expected, min(values)), max(values))  # rounding may step outside


@functools.lru_cache(maxsize=1 << 14)
def _bootstrap(values: tuple[float, ...], confidence: float) -> Interval:
    import numpy as np

    number = len(values)
    if number <= MOST_ENUMERATED:
        places = np.array(list(itertools.product(range(number), repeat=number)))
    else:
        places = np.random.default_rng(0).integers(number, size=(RESAMPLES, number))
    means = np.asarray(values)[places].mean(axis=1)
    low, high = np.quantile(means, [HALF - confidence / 2, HALF + confidence / 2], method="inverted_cdf")
    return Interval(float(low), float(high))


def bootstrap_mean(values: Iterable[float | None], confidence: float = CONFIDENCE) -> Interval | None:
    """Return the percentile bootstrap interval (Efron, 1979) of the mean of the known values; None if fewer than two.

    The same values have the same interval everywhere: up to five are resampled in every possible way, more of them
    4,000 times from a fixed seed.
    """
    known = tuple(sorted(value for value in values if value is not None))
    if len(known) < 2:
        return None
    return Interval(known[0], known[0]) if known[0] == known[-1] else _bootstrap(known, confidence)


def length_profile(
    curves: Iterable[Mapping[int, float]], level: float, confidence: float = CONFIDENCE
) -> dict[int, Share]:
    """Return the share of seeds that reach a level at each length, given every seed's accuracy by length."""
    known = list(curves)
    lengths = sorted({length for curve in known for length in curve})
    shares = {length: Share.at_least((curve.get(length) for curve in known), level, confidence) for length in lengths}
    return {length: share for length, share in shares.items() if share is not None}


def share_failing(
    pairs: Iterable[tuple[float | None, float | None]], level: float, confidence: float = CONFIDENCE
) -> Share | None:
    """Return how many of the seeds that are perfect at trained lengths stay below a level at the test length.

    A pair has a seed's accuracies at trained lengths and at the test length; None if no seed is perfect and measured.
    """
    tested = [far for near, far in pairs if near is not None and near >= PERFECT and far is not None]
    return Share(sum(far < level for far in tested), len(tested), confidence) if tested else None
