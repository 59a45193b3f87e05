"""Figure: the largest state machine that a bilinear model tracks, by the number of its factors."""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch.analysis.board import Board
from orch.analysis.comparison import Comparison
from orch.analysis.figures.figure import Drawing, ReportFigure, comparisons_of
from orch.analysis.figures.style import FAINT, OURS, PUBLISHED, SOFT, styled, titled_figure
from orch.analysis.published import OOD, TABLES, PublishedCell, published_cells
from orch.sweeps.selection import LEARNED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL = "full"
"""Name of the bilinear model, which is not factored, among the numbers of factors."""

TITLE = "Number of factors and the largest state machine tracked"
CAPTION = (
    "The largest state machine tracked by a bilinear model of so many factors: the most states with an accuracy of"
    " {tracked} or more at {length} inputs, the best over learning rates and seeds, ours at {scale} scale. Hollow: some"
    " machines of that model have no results yet."
)

_WIDTH, _HEIGHT = 5.2, 3.0


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest state machine that a model with a number of factors tracks."""

    factors: str
    num_states: int
    """States of the largest machine tracked; 0 for none."""
    complete: bool = True
    """Whether every machine of that model has results."""


def reaches(accuracies: Iterable[tuple[PublishedCell, float | None]]) -> list[Reach]:
    """Return the reach for each number of factors with results, given the accuracy of each cell or None."""
    by_factors: dict[str, list[tuple[int, float | None]]] = {}
    for cell, accuracy in accuracies:
        if cell.split == OOD:
            by_factors.setdefault(cell.key.variant or FULL, []).append((cell.key.modulus, accuracy))
    found = []
    for factors, group in by_factors.items():
        known = [(states, accuracy) for states, accuracy in group if accuracy is not None]
        if known:
            largest = max((states for states, accuracy in known if accuracy >= LEARNED), default=0)
            found.append(Reach(factors, largest, len(known) == len(group)))
    return found


def our_reaches(comparisons: Iterable[Comparison]) -> list[Reach]:
    """Return how far our models reach."""
    return reaches((each.published, each.ours) for each in comparisons)


def published_reaches() -> list[Reach]:
    """Return how far the published models reach."""
    return reaches((cell, cell.accuracy) for cell in published_cells("factors"))


@styled()
def draw(ours: Sequence[Reach], published: Sequence[Reach], num_states: Sequence[int], title: str) -> "Figure":
    """Draw our reaches and the published ones; `num_states` are the sizes of the machines that were trained here."""
    columns = sorted({each.factors for each in (*ours, *published)}, key=_order)
    levels = sorted({0, *num_states, *(each.num_states for each in (*ours, *published))})
    figure = titled_figure(title, _WIDTH, _HEIGHT)
    axes = figure.add_axes((0.115, 0.16, 0.865, 0.64))
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.4, len(levels) - 0.6))
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(levels)), ["none", *map(str, levels[1:])])
    axes.set(xlabel="Number of factors", ylabel="Largest machine tracked (states)")
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    limit = levels.index(max(num_states))
    if limit < len(levels) - 1:
        axes.axhline(limit, color=SOFT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        end: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "color": SOFT}
        axes.annotate("largest trained here", (len(columns) - 0.5, limit), (0, 2), **end)
    dashed = (0, (3.5, 1.4))
    for name, shown, colour, marker, line, aside in (
        ("ours", ours, OURS, "o", "-", -0.07),
        ("published", published, PUBLISHED, "s", dashed, 0.07),
    ):
        reach_of = {each.factors: each for each in shown}
        x = [place + aside for place in range(len(columns))]
        y = [levels.index(reach_of[factors].num_states) if factors in reach_of else math.nan for factors in columns]
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5}
        axes.plot(x, y, linestyle=line, linewidth=1.2, label=name, **look)
        for place, height, factors in zip(x, y, columns, strict=True):
            if factors in reach_of and not reach_of[factors].complete:
                axes.plot(place, height, markerfacecolor="white", zorder=4, **look)
    figure.legend(loc="upper left", bbox_to_anchor=(0.1, 0.9), ncols=2, borderpad=0)
    return figure


def _order(factors: str) -> float:
    return float("inf") if factors == FULL else float(factors)


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    comparisons = comparisons_of(board, "factors", OOD)
    sizes = sorted({each.published.key.modulus for each in comparisons})
    source = functools.partial(draw, our_reaches(comparisons), published_reaches(), sizes, TITLE)
    caption = CAPTION.format(tracked=LEARNED, length=TABLES["factors"].test_length, scale=board.scale.name)
    yield Drawing(sweep, TITLE, caption, sweep, source)


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"factors"}))
