"""The gallery: every figure that a board has results for."""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass

from orch.analysis.board import Board
from orch.analysis.figures.figure import Drawing, ReportFigure
from orch.core.errors import OrchError
from orch.sweeps.catalogue import resolve
from orch.sweeps.registry import ALL

_PACKAGE = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that were drawn, and the reasons why others were not."""

    drawings: list[Drawing]
    left_out: dict[str, str]
    """Reason why a figure could not be drawn, by its name."""


def figures(board: Board, sweeps: Iterable[str] = (ALL,)) -> Gallery:
    """Draw every figure of these sweeps from the finished trials."""
    gallery, known = Gallery([], {}), find_figures()
    for sweep in resolve(sweeps, board.catalogue):
        for name, figure in known.items():
            if figure.suits(sweep):
                try:
                    gallery.drawings.extend(figure.drawings(board, sweep))
                except OrchError as error:
                    gallery.left_out[name if name == sweep else f"{name}-{sweep}"] = str(error)
    return gallery


def find_figures() -> dict[str, ReportFigure]:
    """Return the figures of this package by the names of their files, in the order of the report."""
    found: dict[str, ReportFigure] = {}
    for module in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__):
        figure = getattr(importlib.import_module(f"{_PACKAGE}.{module.name}"), "FIGURE", None)
        if isinstance(figure, ReportFigure):
            found[module.name.replace("_", "-")] = figure
    return dict(sorted(found.items(), key=lambda item: (item[1].place, item[0])))
