"""The texts in a cell: our number, by the paper's reading or by our own, and the published value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from orch.analysis.aggregate import METRICS, CellStatus, Score, where_chosen
from orch.analysis.agreement import is_beyond
from orch.analysis.comparison import Comparison
from orch.analysis.published import OOD
from orch.analysis.statistics import BEST_OF
from orch.core.counted import counted
from orch.sweeps.measured import measured

PARTIAL, DIVERGED, SOME_FAILED, TWICE, MISSING, FAILED, NOT_PLANNED = "*†‡§?×–"
LEGEND = {
    PARTIAL: "not all of its trials are finished",
    DIVERGED: "some of its trials diverged",
    SOME_FAILED: "some of its trials failed",
    TWICE: "published with the same value in another table too",
    MISSING: "none of its trials is finished yet",
    FAILED: "none of its trials is finished, and one failed",
    NOT_PLANNED: "not planned at this scale",
}


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A cell as texts, the same for every rendering."""

    value: float | None
    """The accuracy that sets the cell's colour; None if we have no result."""
    lines: tuple[str, ...]
    """The texts that `TableStyle.lines` names; the first is ours."""
    marks: str = ""
    """Marks on our number, explained by `LEGEND`."""
    marks_published: str = ""
    """Marks on the published value, explained by `LEGEND`."""
    also: str = ""
    """Other values that the paper gives for the same number."""
    beyond: bool = False
    """True if the difference is beyond the tolerance."""
    tooltip: str = ""
    """Everything known about the cell, in a few sentences."""


class Piece(NamedTuple):
    """One text of a cell, as every rendering shows it."""

    name: str
    """The name among `TableStyle.lines`."""
    text: str
    marks: str = ""
    bold: bool = False


@dataclass(frozen=True, slots=True)
class TableStyle:
    """The texts that a reading of our trials shows in each cell."""

    lines: tuple[str, ...]
    """Names of the texts in a cell, ours first."""
    statistic: str
    """The words for how our number is computed: `{trials}` is their number, `{chosen}` where rates are chosen."""
    texts: Callable[[Comparison, Score], tuple[str, ...]]
    """Returns the texts of a cell that has a score."""
    value: Callable[[Score], float | None]
    """Returns the accuracy that sets a cell's colour."""


def _paper_texts(comparison: Comparison, score: Score) -> tuple[str, ...]:
    assert score.best is not None, "a comparison has a score only if it was measured"
    assert comparison.difference is not None, "a comparison with a score has a difference"
    return decimals(score.best), decimals(comparison.published.accuracy), signed(comparison.difference)


def _our_texts(comparison: Comparison, score: Score) -> tuple[str, ...]:
    spread = "" if score.spread is None else f"±{score.spread:.2f}"
    learned, rate = score.learned, rate_text(comparison.summary.learning_rate)
    seeds = f"{learned.num} of {learned.of} learn" if learned else f"n={comparison.summary.num_seeds}"
    mean = MISSING if score.mean is None else decimals(score.mean)
    return mean, spread, seeds, rate, decimals(comparison.published.accuracy)


PUBLISHED, DIFFERENCE = "published", "difference"
READINGS: dict[str, TableStyle] = {
    "paper": TableStyle(
        lines=("ours", PUBLISHED, DIFFERENCE),
        statistic="the best of {trials}, over learning rates and seeds",
        texts=_paper_texts,
        value=lambda score: score.best,
    ),
    "ours": TableStyle(
        lines=("ours", "spread", "seeds", "rate", PUBLISHED),
        statistic="of {trials}, the learning rate chosen {chosen}, then the mean and the standard deviation"
        " over its seeds, and how many of them learn",
        texts=_our_texts,
        value=lambda score: score.mean,
    ),
}


def entry_of(comparison: Comparison | None, style: TableStyle, tolerance: float) -> TableEntry:
    """Return the cell of a comparison, or the cell of a number that is not planned if there is no comparison."""
    if comparison is None:
        return TableEntry(None, (NOT_PLANNED, *("" for _ in style.lines[1:])))
    published, summary = comparison.published, comparison.summary
    others, score = comparison.other_values, comparison.score
    if score is None:
        mark = FAILED if summary.status is CellStatus.FAILED else MISSING
        texts = tuple(decimals(published.accuracy) if name == PUBLISHED else "" for name in style.lines)
        lines = (mark, *texts[1:])
    else:
        lines = style.texts(comparison, score)
    marks = [
        (PARTIAL, summary.status is CellStatus.PARTIAL),
        (DIVERGED, summary.num_diverged > 0),
        (SOME_FAILED, summary.num_failed > 0 and score is not None),
    ]
    return TableEntry(
        value=None if score is None else style.value(score),
        lines=lines,
        marks="".join(mark for mark, applies in marks if applies),
        marks_published=TWICE if comparison.also and not others else "",
        also=f"also {', '.join(map(decimals, others))}" if others else "",
        beyond=is_beyond(comparison, tolerance),
        tooltip=_tooltip(comparison),
    )


def _tooltip(comparison: Comparison) -> str:
    score, summary = comparison.score, comparison.summary
    sentences = []
    if score is not None and comparison.difference is not None:
        spread = "" if score.spread is None else f" ± {score.spread:.3f}"
        seeds = counted(summary.num_seeds, "seed")
        rate = f"rate {rate_text(summary.learning_rate)}, chosen {where_chosen([summary.chosen_at])}"
        sentences.append(f"Best {score.best:.3f}, trial {score.best_trial}.")
        if score.expected_best is not None:
            sentences.append(f"Expected best of {BEST_OF} trials {score.expected_best:.3f}.")
        if score.mean is not None:
            sentences.append(f"Mean {score.mean:.3f}{spread}, {seeds} at {rate}.")
        if score.learned is not None:
            sentences.append(f"Seeds that learn: {score.learned}.")
        if summary.failing is not None and summary.failing.num and comparison.published.split == OOD:
            sentences.append(f"Perfect at trained lengths, then failing at the test length: {summary.failing}.")
        sentences.append(f"Trials by rate: {_trials(comparison)}.")
    published = f"Published {decimals(comparison.published.accuracy)}"
    places = [f"{decimals(number.accuracy)} in {number.table}" for number in comparison.also]
    sentences.append(f"{published}; also {', '.join(places)}." if places else f"{published}.")
    if summary.remark:
        sentences.append(summary.remark[0].upper() + summary.remark[1:] + ".")
    return " ".join(sentences)


def _trials(comparison: Comparison) -> str:
    """Return the accuracy of every finished trial, the best first at each learning rate."""
    scores: dict[float, list[str]] = {}
    for row in comparison.finished:
        value = measured(row, METRICS[comparison.published.split])
        scores.setdefault(row["learning_rate"], []).append(MISSING if value is None else decimals(value))
    return "; ".join(f"{rate_text(rate)}: {', '.join(scores[rate])}" for rate in sorted(scores, reverse=True))


def decimals(value: float) -> str:
    """Return a number with two decimals and a true minus sign; zero has no sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def signed(value: float) -> str:
    """Return a difference with two decimals and its sign, which is ± for zero."""
    text = decimals(value)
    return text if text.startswith("−") else f"±{text}" if text == "0.00" else f"+{text}"


def rate_text(rate: float | None) -> str:
    """Return a learning rate in its shortest scientific notation; empty if there is none.

    >>> rate_text(0.001), rate_text(0.00025)
    ('1e-3', '2.5e-4')
    """
    if rate is None:
        return ""
    digits, exponent = f"{rate:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"
