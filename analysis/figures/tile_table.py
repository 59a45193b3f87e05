"""The hierarchy for a page: a table of tiles, each with our accuracy above the published one."""

from collections.abc import Iterable
from itertools import groupby

from markupsafe import escape

from orch.analysis.comparison import Comparison
from orch.analysis.figures.shade import digits
from orch.analysis.figures.tiles import FAMILIES, Tile, tiles
from orch.analysis.tables.colour import step_of
from orch.tasks import REGISTRY


def render_tiles(comparisons: Iterable[Comparison]) -> str:
    """Write the tiles of one table and split as HTML, in the colours of the paper's tables."""
    shown = tiles(comparisons)
    columns = list(dict.fromkeys((task, modulus) for _, task, modulus in shown))
    tasks = "".join(
        f'<th class="over apart" scope="colgroup" colspan="{len(list(group))}">{escape(REGISTRY[task].title_of())}</th>'
        for task, group in groupby(task for task, _ in columns)
    )
    moduli = "".join(
        f'<th class="over{_apart(columns, place)}" scope="col">{_modulus(task, modulus)}</th>'
        for place, (task, modulus) in enumerate(columns)
    )
    bodies = []
    for rows in FAMILIES.values():
        lines = []
        for row in rows:
            cells = (_cell(shown.get((row, *column)), _apart(columns, place)) for place, column in enumerate(columns))
            lines.append(f'<tr><th scope="row">{escape(row)}</th>{"".join(cells)}</tr>')
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    head = f"<thead><tr><td></td>{tasks}</tr><tr><td></td>{moduli}</tr></thead>"
    return f'<div class="paper-table tiles"><div class="scroll"><table>{head}{"".join(bodies)}</table></div></div>'


def _modulus(task: str, modulus: int) -> str:
    """Return the heading of a column, whose words a narrow page leaves out."""
    before, _, after = REGISTRY[task].modulus_label.partition("{}")
    return f'<span class="word">{escape(before)}</span>{modulus}<span class="word">{escape(after)}</span>'


def _apart(columns: list[tuple[str, int]], place: int) -> str:
    """Return the class of a column that begins a task."""
    return " apart" if place == 0 or columns[place - 1][0] != columns[place][0] else ""


def _cell(tile: Tile | None, apart: str) -> str:
    if tile is None:
        return f'<td class="{apart.strip()}"></td>'
    published = digits(tile.published)
    if tile.ours is None:
        return (
            f'<td class="blank{apart}" title="no results yet; published {published}">–<small>{published}</small></td>'
        )
    ours = digits(tile.ours) + ("" if tile.conclusive else "*")
    inner = f'<b class="a{step_of(tile.ours)}">{ours}</b><small class="a{step_of(tile.published)}">{published}</small>'
    return f'<td class="{apart.strip()}" title="ours {ours}, published {published}">{inner}</td>'
