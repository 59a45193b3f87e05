"""The pages as HTML. Values are escaped by the templates; nothing of a store is ever markup."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from markupsafe import Markup

from orch.analysis.claims import Verdict, evidence_text, verdict_text
from orch.analysis.html_templates import open_templates
from orch.analysis.report.page import VERDICT_MARKS
from orch.analysis.tables.colour import step_of
from orch.analysis.tables.entries import decimals
from orch.analysis.tables.html import ramp_stylesheet
from orch.core.counted import counted
from orch.running.progress import duration
from orch.running.status import SweepStatus
from orch.serving import charts
from orch.serving.overview import LOST, Overview
from orch.serving.tiles import Tile, TileGrid
from orch.serving.trial_details import TrialDetails
from orch.sweeps.selection import LEARNED

_PACKAGE = "orch.serving"
MOST_CARDS = 12
"""Running trials that have a card with their curve; the others are listed below."""
MOST_IDS = 12
TABLES = ("trials", "cells", "comparison", "attempts", "plan")
"""Views that have a page."""
PARTS = ("facts", "running", "tiles", "claims", "failures", "newest", "sweeps")
"""The parts of the first page, each replaced when it changes."""


def stylesheet() -> str:
    """Return the styles of all pages: those of the report, those of the live page, and the colours of accuracies."""
    report = resources.files("orch.analysis.report").joinpath("page.css").read_text()
    own = resources.files(_PACKAGE).joinpath("static", "live.css").read_text()
    return report + own + ramp_stylesheet(".tiles")


def script() -> str:
    """Return the script that replaces parts of a page when the server sends new ones."""
    return resources.files(_PACKAGE).joinpath("static", "live.js").read_text()


def icon() -> str:
    """Return the icon of the pages."""
    return resources.files(_PACKAGE).joinpath("static", "icon.svg").read_text()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page, which is replaced when it changes."""

    html: str
    children: Mapping[str, str] = field(default_factory=dict)
    """Its inner parts by the id of their element. While these are the same ones, each is replaced by itself."""


def overview_parts(overview: Overview) -> dict[str, Part]:
    """Render every part of the first page, by the id of its element."""
    grids = {f"grid-{number}": _grid(grid, first=number == 0) for number, grid in enumerate(overview.grids)}
    published = any(tile.published is not None for grid in overview.grids for tile in grid.tiles.values())
    return {
        f"part-{name}": Part(
            _fill(name, overview=overview, grids=grids, published=published), grids if name == "tiles" else {}
        )
        for name in PARTS
    }


_GRIDS: dict[tuple[str, bool], tuple[TileGrid, str]] = {}
"""The last rendering of each grid, which is most of the page and seldom changes."""


def _grid(grid: TileGrid, first: bool) -> str:
    known, html = _GRIDS.get((grid.key, first), (None, ""))
    if known != grid:
        html = _fill("grid", grid=grid, open=first or grid.num_running > 0)
        _GRIDS[grid.key, first] = grid, html
    return html


def overview_page(overview: Overview) -> str:
    """Render the first page."""
    parts = {name: part.html for name, part in overview_parts(overview).items()}
    return _page("overview", overview.location, "Overview", events="/", version=overview.version, parts=parts)


def trial_part(details: TrialDetails) -> str:
    """Render what changes on the page of a trial while it trains."""
    return _fill("trial_progress", trial=details)


def trial_page(location: str, details: TrialDetails) -> str:
    """Render the page of a trial."""
    events = f"/trial/{details.trial_id}" if details.state != "finished" else ""
    part = Markup(trial_part(details))
    return _page("trial", location, details.label, events=events, version="", trial=details, progress=part)


def page(template: str, location: str, title: str, **values: Any) -> str:
    """Render a page that does not change by itself."""
    return _page(template, location, title, events="", version="", **values)


def _page(template: str, location: str, title: str, events: str, version: str, **values: Any) -> str:
    return _fill(template, location=location, title=title, events=events, version=version, tables=TABLES, **values)


@functools.cache
def _templates() -> Environment:
    templates = open_templates(_PACKAGE)
    templates.filters |= {
        "accuracy": lambda value: "–" if value is None else decimals(value),
        "ago": ago,
        "counted": counted,
        "duration": duration,
        "parameters": lambda values: urlencode(dict(values)),
        "percent": lambda value: f"{100 * value:.0f} %",
        "significant": lambda value: "–" if value is None else charts.number_text(value),
        "step_class": lambda value: f"a{step_of(value)}",
        "thousands": lambda value: f"{value:,}",
        "tile_title": tile_title,
        "time_of_day": lambda value: "" if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC",
        "whole": lambda value: f"{value:,.0f}",
    }
    templates.globals |= {
        "LEARNED": LEARNED,
        "LOST": LOST,
        "MARKS": VERDICT_MARKS,
        "MOST_CARDS": MOST_CARDS,
        "MOST_IDS": MOST_IDS,
        "SUPPORTED": Verdict.SUPPORTED,
        "charts": charts,
        "curve_points": curve_points,
        "evidence_text": evidence_text,
        "shares": shares,
        "verdict_text": verdict_text,
    }
    return templates


def _fill(template: str, **values: Any) -> str:
    return _templates().get_template(f"{template}.html.j2").render(values)


def curve_points(curve: Sequence[tuple[int, float | None, float | None]], place: int) -> list[tuple[float, float]]:
    """Return the steps of a curve with one of its numbers, the loss (1) or the accuracy (2), where it was measured."""
    return [(point[0], value) for point in curve if (value := point[place]) is not None and math.isfinite(value)]


def shares(sweep: SweepStatus) -> list[tuple[str, int, float, float]]:
    """Return the segments of a sweep's bar: name, count, start and width in percent. Empty segments are left out."""
    counts: Mapping[str, int] = {
        "done": sweep.done,
        "running": sweep.running,
        "failed": sweep.failed - sweep.lost,
        LOST: sweep.lost,
        "to do": sweep.to_do,
        "waiting": sweep.waiting,
    }
    found, start = [], 0.0
    for name, count in counts.items():
        width = 100 * count / max(1, sweep.total)
        if count:
            found.append((name, count, round(start, 2), round(width, 2)))
        start += width
    return found


def tile_title(tile: Tile, row: str, column: Any) -> str:
    """Return what a tile says when it is pointed at."""
    summary = tile.summary
    lines = [f"{row} on {column.task} {column.heading}".rstrip()]
    if tile.accuracy is not None:
        lines.append(f"best {decimals(tile.accuracy)} over learning rates and seeds")
    if tile.mean is not None and summary.learning_rate is not None:
        seeds = counted(summary.num_seeds, "seed")
        lines.append(f"mean {decimals(tile.mean)} over {seeds} at the chosen rate {summary.learning_rate:g}")
    if tile.learned is not None:
        lines.append(f"seeds that learned: {tile.learned}, with Wilson's interval")
    if tile.published is not None:
        lines.append(f"published {decimals(tile.published)}")
    lines.append(f"{summary.num_done} of {counted(summary.num_planned, 'trial')} finished")
    if tile.num_running:
        lines.append(f"{tile.num_running} running")
    if summary.num_failed:
        lines.append(f"{summary.num_failed} failed")
    if summary.num_diverged:
        lines.append(f"{summary.num_diverged} diverged")
    return "\n".join(lines)


def ago(time: datetime | None) -> str:
    """Return how long ago a time was, in words."""
    if time is None:
        return ""
    seconds = max(0.0, (datetime.now(UTC) - time).total_seconds())
    return "just now" if seconds < 10 else f"{duration(seconds)} ago"
