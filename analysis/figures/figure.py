"""The declaration of a figure of the report: the sweeps that it is drawn for, and how it is drawn from a board."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.analysis.board import Board
from orch.analysis.comparison import Comparison, compare
from orch.analysis.published import TABLES
from orch.core.errors import OrchError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NothingToDraw(OrchError):
    """A figure lacks the results that it needs."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn figure of one sweep."""

    name: str
    """Name of its file, without the ending; unique within a gallery."""
    title: str
    caption: str
    sweep: str
    source: "Figure | Callable[[], Figure]"
    """The figure for print, or a function that draws it."""
    on_page: Callable[[], str] | None = None
    """Writes the figure as HTML that adapts to the width of a page; None to show the figure for print.

    An empty text leaves the figure out, where a table of the page has the same numbers on the same colours.
    """

    @property
    def figure(self) -> "Figure":
        """The figure for print."""
        return self.source() if callable(self.source) else self.source


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFigure:
    """The declaration of a figure. The gallery finds every module of this package with a `FIGURE` of this type."""

    drawings: Callable[[Board, str], Iterable[Drawing]]
    """Draws the figure for a sweep; raises an `OrchError` with the reason if it cannot be drawn."""
    sweeps: frozenset[str] | None = None
    """Sweeps that the figure is drawn for; None for every sweep, including those that users add."""
    except_sweeps: frozenset[str] = frozenset()
    """Sweeps that the figure is not drawn for."""
    place: int = 100
    """Position among the figures of a sweep; figures with equal places are sorted by name."""

    def suits(self, sweep: str) -> bool:
        """Return whether the figure is drawn for a sweep."""
        return (self.sweeps is None or sweep in self.sweeps) and sweep not in self.except_sweeps


def require_results(board: Board, sweep: str) -> None:
    """Raise an error if no trial of a sweep is finished."""
    if not any(cell.finished for cell in board.cells(sweep)):
        raise NothingToDraw(f"no trial of {sweep} is finished at {board.scale.name} scale")


def comparisons_of(board: Board, table: str, split: str) -> list[Comparison]:
    """Compare the numbers of a published table and split with ours; raise an error if we have no results."""
    require_results(board, TABLES[table].sweep)
    return [each for each in compare(board, [table]) if each.published.split == split]
