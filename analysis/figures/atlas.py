"""Figure: the atlas. Models by family, tasks by algebra; how many seeds learn, and what theory says as the border.

Sizes are inches on paper.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from orch.analysis.atlas import SWEEP, Atlas, Outcome, Tile, read_atlas
from orch.analysis.board import Board
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure
from orch.analysis.figures.shade import shade, text_on
from orch.analysis.figures.style import FAINT, PUBLISHED, SOFT, styled, titled_figure
from orch.sweeps.experiments.atlas import short_title
from orch.sweeps.selection import LEARNED
from orch.tasks.algebra import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Atlas: which model tracks which state"
CAPTION = (
    "Seeds that have learned the task, of those finished: an accuracy of at least {learned} at the last of {length}"
    " inputs. Border: what theory says of one set of weights at every length, solid if the model can track the task,"
    " dashed if it cannot, none if theory does not say. A dot marks a disagreement: filled where theory rules out what"
    " was learned, hollow where no seed found what theory allows. Hatched: not measured, or none of"
    " the seeds finished so far has learned."
)

_WIDE, _TALL, _BETWEEN, _BETWEEN_GROUPS = 0.36, 0.235, 0.045, 0.13
_LEFT, _TOP, _RIGHT, _BOTTOM = 2.62, 1.42, 0.55, 0.62
_CAN, _CANNOT, _DOT = "#0B3C5D", PUBLISHED, "#c00000"
_BLANK: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "hatch": "/////", "linewidth": 0}
_BORDERS: Mapping[Verdict, dict[str, Any]] = {
    Verdict.CAN: {"edgecolor": _CAN, "linewidth": 1.3},
    Verdict.CANNOT: {"edgecolor": _CANNOT, "linewidth": 1.3, "linestyle": (0, (2.2, 1.6))},
    Verdict.DEPENDS: {"edgecolor": FAINT, "linewidth": 0.5},
}


@styled()
def draw(atlas: Atlas, title: str) -> "Figure":
    """Draw the tiles; those that are not measured, or only in part, are hatched."""
    lefts, right = _places(list(atlas.tasks.items()), _LEFT, _WIDE)
    tops, foot = _places(list(atlas.models.items()), _TOP, _TALL)
    width, height = right + _RIGHT, foot + _BOTTOM
    figure = titled_figure(title, width, height, margin=0.1)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    _add_names(axes, atlas, lefts, tops)
    for tile in atlas.tiles:
        _add_tile(axes, lefts[tile.task], tops[tile.model], tile)
    _add_key(axes, foot + 0.2)
    return figure


def _places(members: Sequence[tuple[Any, Any]], start: float, size: float) -> tuple[dict[Any, float], float]:
    """Return where the tiles of each member begin, with room between groups, and where the last one ends."""
    found, place = {}, start
    for _, alike in groupby(members, key=lambda member: member[1]):
        for name, _ in alike:
            found[name] = place
            place += size + _BETWEEN
        place += _BETWEEN_GROUPS
    return found, place - _BETWEEN_GROUPS - _BETWEEN


def _add_names(axes: "Axes", atlas: Atlas, lefts: Mapping[Any, float], tops: Mapping[str, float]) -> None:
    for model, top in tops.items():
        axes.text(_LEFT - 0.09, top + _TALL / 2, model, ha="right", va="center_baseline")
    for family, alike in groupby(atlas.models.items(), key=lambda member: member[1]):
        places = [tops[model] for model, _ in alike]
        middle = (places[0] + places[-1] + _TALL) / 2
        axes.text(0.1, middle, _in_two_lines(family), ha="left", va="center", color=SOFT, linespacing=1.1)
    for task, left in lefts.items():
        name = short_title(task)
        axes.text(
            left + _WIDE / 2 + 0.03, _TOP - 0.08, name, rotation=45, ha="left", va="bottom", rotation_mode="anchor"
        )
    for kind, columns in groupby(atlas.tasks.items(), key=lambda member: member[1]):
        places = [lefts[task] for task, _ in columns]
        axes.plot([places[0], places[-1] + _WIDE], [_TOP - 0.05] * 2, color=SOFT, linewidth=0.6)
        middle = (places[0] + places[-1] + _WIDE) / 2
        below = max(tops.values()) + _TALL + 0.04
        axes.text(middle, below, _in_two_lines(kind), ha="center", va="top", color=SOFT, linespacing=1.1, fontsize=6.5)


def _in_two_lines(name: str) -> str:
    words = name.replace("_", " ").split()
    half = (len(words) + 1) // 2
    return "\n".join(filter(None, (" ".join(words[:half]), " ".join(words[half:]))))


def _add_tile(axes: "Axes", left: float, top: float, tile: Tile) -> None:
    from matplotlib.patches import Rectangle

    middle: dict[str, Any] = {"x": left + _WIDE / 2, "y": top + _TALL / 2, "ha": "center", "va": "center_baseline"}
    text = f"{tile.num_learned}/{tile.num_finished}"
    if tile.share is None or tile.outcome is Outcome.NOT_MEASURED:
        axes.add_patch(Rectangle((left, top), _WIDE, _TALL, **_BLANK))
        if tile.share is not None:
            axes.text(s=text, color=SOFT, **middle)
    else:
        face = shade(tile.share)
        axes.add_patch(Rectangle((left, top), _WIDE, _TALL, facecolor=face, linewidth=0))
        axes.text(s=text, color=text_on(face), **middle)
    axes.add_patch(Rectangle((left, top), _WIDE, _TALL, fill=False, **_BORDERS[tile.prediction.verdict]))
    if tile.outcome in (Outcome.UNFORESEEN, Outcome.NOT_FOUND):
        _add_dot(axes, left + _WIDE - 0.045, top + 0.045, tile.outcome)


def _add_dot(axes: "Axes", x: float, y: float, outcome: Outcome) -> None:
    face = _DOT if outcome is Outcome.UNFORESEEN else "white"
    axes.plot([x], [y], marker="o", markersize=3.6, markerfacecolor=face, markeredgecolor=_DOT, markeredgewidth=0.9)


def _add_key(axes: "Axes", top: float) -> None:
    """Explain shades, borders and dots."""
    from matplotlib.patches import Rectangle

    top += 0.16
    middle, left = top + _TALL / 2, 0.1
    beside: dict[str, Any] = {"va": "center_baseline", "color": SOFT}
    for share, text in ((1.0, "3/3"), (1 / 3, "1/3")):
        axes.add_patch(Rectangle((left, top), _WIDE, _TALL, facecolor=shade(share), linewidth=0))
        axes.text(left + _WIDE / 2, middle, text, ha="center", va="center_baseline", color=text_on(shade(share)))
        left += _WIDE + 0.04
    axes.text(left + 0.02, middle, "seeds that learn", **beside)
    left += 1.12
    for verdict, text in ((Verdict.CAN, "theory: can"), (Verdict.CANNOT, "cannot")):
        axes.add_patch(Rectangle((left, top), _WIDE, _TALL, fill=False, **_BORDERS[verdict]))
        axes.text(left + _WIDE + 0.06, middle, text, **beside)
        left += _WIDE + 0.16 + 0.062 * len(text)
    for outcome, text in ((Outcome.UNFORESEEN, "learned against theory"), (Outcome.NOT_FOUND, "not found")):
        _add_dot(axes, left + 0.06, middle, outcome)
        axes.text(left + 0.14, middle, text, **beside)
        left += 0.26 + 0.062 * len(text)
    axes.add_patch(Rectangle((left, top), _WIDE, _TALL, **_BLANK))
    axes.text(left + _WIDE + 0.06, middle, "not measured", **beside)


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    atlas = read_atlas(board)
    if not atlas.num_trials:
        raise NothingToDraw("the atlas has no results yet")
    caption = CAPTION.format(learned=LEARNED, length=atlas.test_length)
    yield Drawing("atlas", TITLE, caption, sweep, draw(atlas, TITLE))


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({SWEEP}))
