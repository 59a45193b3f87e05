"""The overview in a terminal, drawn with rich. Text from a store loses its control characters first."""

from collections.abc import Iterator
from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orch.analysis.claims import ClaimsAtScale, Verdict
from orch.analysis.report.page import VERDICT_MARKS
from orch.analysis.tables.colour import DARK, background, ink
from orch.analysis.tables.entries import decimals
from orch.core.counted import counted
from orch.core.printable import printable
from orch.running.progress import about
from orch.running.status import SweepStatus
from orch.serving.charts import number_text
from orch.serving.overview import LOST, Overview
from orch.serving.pages import shares
from orch.serving.tiles import Tile, TileGrid

MOST_RUNNING, MOST_GRIDS, MOST_FAILURES = 8, 2, 3
_BAR, _LINE = 30, 20
_BLOCKS = "▁▂▃▄▅▆▇█"
_STYLES = {
    "done": "blue",
    "running": "cyan",
    "failed": "red",
    LOST: "bright_black",
    "waiting": "bright_black",
    "to do": "bright_black",
}
LEGEND = (
    "tiles: best accuracy at the test length (0 is chance, 1 is perfect); ° unfinished, • a trial in training,"
    " · no result yet, ✗ failed"
)


def draw(overview: Overview, colours: bool = True) -> Group:
    """Return everything that `orch watch` shows; without `colours`, tiles are numbers alone."""
    parts: list[RenderableType] = [_headline(overview), Text("")]
    if overview.sweeps:
        parts += [_sweeps(overview.sweeps)]
    if overview.running:
        parts += [_running(overview)]
    parts += [_grid(grid, colours) for grid in overview.grids[:MOST_GRIDS]]
    if overview.grids:
        parts.append(Text(LEGEND, style="dim"))
    if more := overview.grids[MOST_GRIDS:]:
        parts.append(Text(f"{counted(len(more), 'more grid')}: orch serve shows them all\n", style="dim"))
    parts += [line for asked in overview.results.claims for line in _claims(asked, overview)]
    parts += list(_failures(overview))
    return Group(*parts)


def _headline(overview: Overview) -> Text:
    status = overview.status
    facts = [counted(overview.num_done, "result"), f"{overview.num_running:,} running", f"{overview.num_left:,} to do"]
    if overview.num_lost:
        facts.append(f"{overview.num_lost:,} {LOST}")
    if overview.num_failed:
        facts.append(f"{overview.num_failed:,} failed")
    if status.per_hour is not None and status.drivers:
        facts.append(f"{status.per_hour:,.0f} trials an hour")
    if status.seconds_left is not None:
        facts.append(f"{about(status.seconds_left)} left")
    if overview.money is not None:
        facts.append(f"about {overview.money.text} left to pay")
    text = Text(printable(overview.location), style="bold")
    text.append(f"  {' · '.join(facts)}", style="not bold")
    return text.append(f"  {datetime.now(UTC):%H:%M:%S} UTC", style="dim not bold")


def _sweeps(sweeps: list[SweepStatus]) -> Table:
    table = _table("sweep", "", "done", "")
    for each in sweeps:
        name = printable(f"{each.name} {each.scale}{f' where {each.where}' if each.where else ''}")
        rest = ", ".join(f"{count:,} {kind}" for kind, count, _, _ in shares(each) if kind != "done")
        done = Text(f"{each.done:,} of {each.total:,}", justify="right")
        table.add_row(Text(name, style="dim" if each.outdated else ""), _bar(each), done, Text(rest, style="dim"))
    return table


def _bar(sweep: SweepStatus) -> Text:
    bar = Text()
    for kind, _, start, width in shares(sweep):
        cells = round((start + width) / 100 * _BAR) - len(bar)
        bar.append(("─" if kind in ("to do", "waiting", LOST) else "━") * max(0, cells), style=_STYLES[kind])
    return bar


def _running(overview: Overview) -> Table:
    table = _table("running", "step", "loss", "accuracy", "accuracy so far")
    for each in overview.running[:MOST_RUNNING]:
        now = each.progress
        if now is None:
            table.add_row(Text(printable(overview.name_of(each))), Text("starting", style="dim"), "", "", "")
            continue
        numbers = [f"{now.step:,} of {now.steps:,}", _number(now.train_loss)]
        numbers.append("–" if now.validation_accuracy is None else decimals(now.validation_accuracy))
        cells = [Text(text, justify="right") for text in numbers]
        line = Text(_curve([accuracy for _, _, accuracy in now.curve]), style="blue")
        table.add_row(Text(printable(overview.name_of(each))), *cells, line)
    if (more := len(overview.running) - MOST_RUNNING) > 0:
        table.add_row(Text(f"and {more:,} more", style="dim"), "", "", "", "")
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else number_text(value)


def _curve(values: list[float | None]) -> str:
    """Draw the last validations as blocks: the lowest is chance, the highest perfect."""
    known = [value for value in values if value is not None][-_LINE:]
    return "".join(_BLOCKS[round(7 * min(1.0, max(0.0, value)))] for value in known)


def _grid(grid: TileGrid, colours: bool) -> Table:
    title = f"{grid.sweep} at {grid.scale} scale: {grid.num_done:,} of {counted(grid.num_planned, 'trial')}"
    table = Table(
        title=Text(printable(title)), title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0)
    )
    table.add_column(Text(""))
    for column in grid.columns:
        table.add_column(Text(printable(f"{column.task} {column.heading}".rstrip()), overflow="fold"), justify="center")
    for row in grid.rows:
        tiles = [grid.tiles.get((row, column)) for column in grid.columns]
        table.add_row(Text(printable(row)), *(_tile(tile, colours) for tile in tiles))
    table.add_row()
    return table


def _tile(tile: Tile | None, colours: bool) -> Text:
    if tile is None:
        return Text("")
    busy = "•" if tile.num_running else " "
    if tile.accuracy is None:
        failed = tile.summary.num_failed and not tile.num_running
        return Text(f"{busy}{'✗' if failed else '·'}", style="red" if failed else "dim")
    text = (
        f" {decimals(tile.accuracy)}{'°' if tile.summary.num_done < tile.summary.num_planned else ' '}{busy}".rstrip()
    )
    colour = background(tile.accuracy, DARK)
    return Text(f"{text} ", style=f"{ink(colour)} on {colour}" if colours else "")


def _claims(asked: ClaimsAtScale, overview: Overview) -> Iterator[Text]:
    yield Text(f"{asked.title}: {asked.summary}", style="bold")
    for judgement in asked.judgements:
        turned = overview.turned.get((asked.scale, judgement.claim.id))
        if turned is not None or judgement.verdict is Verdict.CONTRADICTED:
            mark = VERDICT_MARKS[judgement.verdict]
            style = {"good": "green", "bad": "red"}.get(mark.style, "dim")
            before = "" if turned is None else f" (was: {turned.before})"
            yield Text(f"{mark.symbol} {printable(judgement.claim.sentence)}{before}", style=style)


def _failures(overview: Overview) -> Iterator[Text]:
    failures = [group for group in overview.failures if not group.only_lost]
    for group in failures[:MOST_FAILURES]:
        yield Text(printable(f"✗ {counted(len(group.trial_ids), 'trial')}: {group.signature}"), style="red")
        yield Text(printable(f"    {group.message}"), style="dim")
    if failures:
        yield Text("orch failures shows the tracebacks; orch resume tries them again", style="dim")


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(Text(title))
    return table
