"""Figure: which model learns which task, from the least to the most expressive model.

Each tile shows our accuracy, with the published one at its right end. Sizes are inches on paper.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from orch.analysis.board import Board
from orch.analysis.comparison import Comparison
from orch.analysis.figures.figure import Drawing, ReportFigure, comparisons_of
from orch.analysis.figures.shade import digits, shade, text_on
from orch.analysis.figures.style import FAINT, SOFT, styled, titled_figure
from orch.analysis.figures.tile_table import render_tiles
from orch.analysis.figures.tiles import FAMILIES, Tile, tiles
from orch.analysis.published import OOD, TABLES
from orch.sweeps.selection import LEARNED
from orch.tasks import REGISTRY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Which model learns what: accuracy at {length} inputs after training on 2 to 10"
CAPTION = (
    "Accuracy at {length} inputs after training on 2 to 10 (0 is chance, 1 is perfect), the best over learning rates"
    " and seeds: ours at {scale} scale in bold, the published number beside or beneath it on its own colour. A tile"
    " of two colours is a difference. Mamba and the transformer are the best of their numbers of layers, as far as"
    " there are results. Hatched or a dash: no results yet. *: below {learned}, and some trials are unfinished."
)

_OURS, _PUBLISHED, _TALL = 0.43, 0.3, 0.25
"""Widths of the two parts of a tile, and its height."""
_BETWEEN, _BETWEEN_TASKS, _BETWEEN_FAMILIES = 0.035, 0.14, 0.12
_LEFT, _TOP, _RIGHT, _ABOVE_KEY, _BOTTOM = 1.1, 0.8, 0.08, 0.16, 0.12
_KEY_WIDTH = 6.85
_EDGE = "#b9c9dc"
_BLANK: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "hatch": "/////", "linewidth": 0}


@styled()
def draw(comparisons: Iterable[Comparison], title: str, scale: str) -> "Figure":
    """Draw one table and split, with our results at a scale. A cell that the scale does not plan has no tile."""
    shown = tiles(comparisons)
    columns = list(dict.fromkeys((task, modulus) for _, task, modulus in shown))
    lefts, right = _places(columns)
    tops = dict(_tops())
    foot = max(tops.values()) + _TALL
    width, height = max(right, _KEY_WIDTH) + _RIGHT, foot + _ABOVE_KEY + _TALL + _BOTTOM
    figure = titled_figure(title, width, height, margin=0.1)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    _add_names(axes, lefts, tops)
    for (row, task, modulus), tile in shown.items():
        _add_tile(axes, lefts[task, modulus], tops[row], tile)
    _add_key(axes, min(_LEFT, width - _KEY_WIDTH), foot + _ABOVE_KEY, scale, list(shown.values()))
    return figure


def _places(columns: list[tuple[str, int]]) -> tuple[dict[tuple[str, int], float], float]:
    """Return where the tiles of each column begin, and where the last column ends."""
    lefts, left = {}, _LEFT
    for place, (task, modulus) in enumerate(columns):
        if place:
            left += _OURS + _PUBLISHED + (_BETWEEN if columns[place - 1][0] == task else _BETWEEN_TASKS)
        lefts[task, modulus] = left
    return lefts, left + _OURS + _PUBLISHED


def _tops() -> Iterator[tuple[str, float]]:
    """Yield each row with the place where its tiles begin."""
    top = _TOP
    for rows in FAMILIES.values():
        for row in rows:
            yield row, top
            top += _TALL + _BETWEEN
        top += _BETWEEN_FAMILIES


def _add_names(axes: "Axes", lefts: dict[tuple[str, int], float], tops: dict[str, float]) -> None:
    tasks: dict[str, list[float]] = {}
    for (task, modulus), left in lefts.items():
        middle = left + (_OURS + _PUBLISHED) / 2
        tasks.setdefault(task, []).append(middle)
        name = REGISTRY[task].modulus_label.format(modulus)
        axes.text(middle, _TOP - 0.07, name, ha="center", va="bottom", color=SOFT)
    for task, middles in tasks.items():
        middle = (middles[0] + middles[-1]) / 2
        axes.text(middle, _TOP - 0.24, REGISTRY[task].title_of(), ha="center", va="bottom", fontweight="bold")
    for beside, rows in FAMILIES.items():
        for row in rows:
            axes.text(_LEFT - 0.1, tops[row] + _TALL / 2, row, ha="right", va="center_baseline")
        middle = (min(tops[row] for row in rows) + max(tops[row] for row in rows) + _TALL) / 2
        axes.text(0.15, middle, beside, rotation=270, ha="center", va="center", color=SOFT)


def _add_tile(axes: "Axes", left: float, top: float, tile: Tile, numbers: bool = True) -> None:
    """Add a tile; only a tile with results is coloured."""
    from matplotlib.patches import FancyBboxPatch, Rectangle

    right, middle = left + _OURS, top + _TALL / 2
    outline: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.05", "transform": axes.transData}
    rounded = FancyBboxPatch((left, top), _OURS + _PUBLISHED, _TALL, **outline)
    if tile.ours is None:
        colour = SOFT
        halves = [Rectangle((left, top), _OURS, _TALL, **_BLANK)]
    else:
        published = shade(tile.published)
        colour = text_on(published)
        halves = [
            Rectangle((left, top), _OURS, _TALL, facecolor=shade(tile.ours), linewidth=0),
            Rectangle((right, top), _PUBLISHED, _TALL, facecolor=published, linewidth=0),
        ]
    for half in halves:
        axes.add_patch(half)
        half.set_clip_path(rounded)
    rounded.set(fill=False, edgecolor=_EDGE, linewidth=0.5)
    axes.add_patch(rounded)
    if not numbers:
        return
    centred: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
    if tile.ours is not None:
        number = digits(tile.ours) + ("" if tile.conclusive else "*")
        bold: dict[str, Any] = {"color": text_on(shade(tile.ours)), "fontsize": 9.0, "fontweight": "bold"}
        axes.text(left + _OURS / 2, middle, number, **bold, **centred)
    axes.text(right + _PUBLISHED / 2 - 0.012, middle, digits(tile.published), color=colour, **centred)


def _add_key(axes: "Axes", left: float, top: float, scale: str, shown: Sequence[Tile]) -> None:
    """Add the key, which explains only what at least one tile shows."""
    from matplotlib.patches import Rectangle

    middle, swatch, tall = top + _TALL / 2, top + 0.06, _TALL - 0.12
    beside: dict[str, Any] = {"va": "center_baseline", "color": SOFT}
    axes.text(left, middle, f"ours, {scale} scale", **beside)
    _add_tile(axes, left + 1.17, top, Tile(0.75, 0.3, True), numbers=False)
    axes.text(left + 1.97, middle, "published", **beside)
    axes.text(left + 2.8, middle, "0 chance", **beside)
    start, end, num_steps = left + 3.38, left + 4.1, 24
    for step in range(num_steps):
        edge = start + (end - start) * step / num_steps
        # Each step extends to the end, beneath the next one; otherwise thin lines would show between them.
        axes.add_patch(
            Rectangle((edge, swatch), end - edge, tall, facecolor=shade(step / (num_steps - 1)), linewidth=0)
        )
    axes.text(left + 4.17, middle, "1 perfect", **beside)
    if any(tile.ours is None for tile in shown):
        axes.add_patch(Rectangle((left + 4.93, swatch), 0.2, tall, **_BLANK))
        axes.text(left + 5.18, middle, "no results yet", **beside)
    if any(tile.ours is not None and not tile.conclusive for tile in shown):
        axes.text(left + 6.1, middle, "* unfinished", **beside)


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    length = TABLES["main"].test_length
    title = TITLE.format(length=length)
    caption = CAPTION.format(length=length, scale=board.scale.name, learned=LEARNED)
    compared = comparisons_of(board, "main", OOD)
    source = functools.partial(draw, compared, title, board.scale.name)
    yield Drawing("hierarchy", title, caption, sweep, source, functools.partial(render_tiles, compared))


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"main"}), place=1)
