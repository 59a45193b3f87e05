"""A report as one HTML page: styles and figures are inside it, and it loads nothing from the network."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from orch.analysis.agreement import agreement
from orch.analysis.atlas import SWEEP, Atlas, read_atlas
from orch.analysis.claims import ATLAS, ClaimsAtScale, Verdict, evidence_text, sureness_text, verdict_text
from orch.analysis.claims.condition import FAILED
from orch.analysis.comparison import Comparison
from orch.analysis.figures import Drawing, Gallery, svg_element
from orch.analysis.html_templates import open_templates
from orch.analysis.published import OOD, VALIDATION
from orch.analysis.report.collect import Origin, StudyReport, SweepResult
from orch.analysis.report.sweep_table import HEADINGS, NUMBERS, SweepTable, cell_row, sweep_table
from orch.analysis.reproduction import Reproduction, reproduction
from orch.analysis.tables import render, stylesheet
from orch.analysis.views import tally_table
from orch.core.counted import counted
from orch.core.printable import sentence
from orch.running.progress import duration
from orch.sweeps.experiments.atlas import short_title
from orch.sweeps.selection import LEARNED

MOST_IDS = 12
"""Number of trial ids that are listed for each kind of failure."""


LEAD, FIRST_FIGURE = "main", "hierarchy"
"""The sweep and the figure that a page with the paper's main table begins with."""


BEST_TRIAL_HEADINGS = ("model", "task", "settings", "seeds that learn", "mean ± sd", "best", "best trial")
"""Columns of the table of every number: some of those of a sweep's table, and the trial."""


class PageSection(NamedTuple):
    key: str
    """The id that the page's links lead to."""
    title: str
    content: Markup


class VerdictMark(NamedTuple):
    """The symbol of a verdict and its style class."""

    symbol: str
    style: str


VERDICT_MARKS = {
    Verdict.SUPPORTED: VerdictMark("✓", "good"),
    Verdict.CONTRADICTED: VerdictMark("✗", "bad"),
    Verdict.NOT_ENOUGH: VerdictMark("–", "soft"),
}


def page(report: StudyReport, gallery: Gallery) -> str:
    """Write a report and its figures as a page of HTML."""
    files = resources.files("orch.analysis.report")
    style = files.joinpath("page.css").read_text() + stylesheet()
    script = files.joinpath("page.js").read_text()
    sections = list(_sections(report, gallery))
    return _fill(
        "page", report=report, facts=_facts(report), sections=sections, style=Markup(style), script=Markup(script)
    )


def reproduction_section(comparisons: Sequence[Comparison]) -> Markup:
    """Write how many published numbers are met, by table, for both splits."""
    found = [reproduction(comparisons, split) for split in (OOD, VALIDATION)]
    return _fill("reproduction", reproductions=[(each, _tally_rows(each)) for each in found if each.cells])


@cache
def _templates() -> Environment:
    templates = open_templates("orch.analysis.report")
    templates.filters |= {"minute": _minute, "svg": _svg, "html": _html, "thousands": _thousands}
    templates.filters |= {"cells": _cells, "column_names": _column_names, "counted": counted, "sentence": sentence}
    return templates


def _fill(template: str, **values: Any) -> Markup:
    return Markup(_templates().get_template(f"{template}.html.j2").render(values))


def _sections(report: StudyReport, gallery: Gallery) -> Iterator[PageSection]:
    """Yield the results that answer the paper's question, then its claims, then the other results and their origin."""
    has_atlas = any(sweep.name == SWEEP for sweep in report.sweeps)
    if has_atlas:
        yield PageSection("atlas", "Theory and measurement", _atlas(read_atlas(report.board), gallery))

    def paper_tables(sweep: SweepResult) -> list[Markup]:
        names = report.published_tables(sweep.name)
        return [Markup(render(name, report.comparisons, report.scale, "html")) for name in names]

    def own_table(sweep: SweepResult) -> SweepTable:
        return sweep_table(sweep, report.scale)

    if report.recorded:
        own = _fill("recorded", recorded=report.recorded, report=report)
        yield PageSection("own", "Sweeps of your own", own)
    lead = next((sweep for sweep in report.sweeps if sweep.name == LEAD), None)
    results = _fill(
        "sweeps",
        sweeps=report.sweeps,
        gallery=gallery,
        atlas=SWEEP,  # its figure has a section of its own
        paper_tables=paper_tables,
        own_table=own_table,
        numbers=NUMBERS,
        lead=LEAD,
        first=FIRST_FIGURE,
    )
    if lead is not None:
        drawings = [drawing for drawing in gallery.drawings if drawing.name == FIRST_FIGURE]
        content = _fill("lead", drawings=drawings, tables=paper_tables(lead))
        yield PageSection("lead", "The main result", content)
    elif report.sweeps and not has_atlas:
        yield PageSection("results", "Results by sweep", results)
    if report.claims:
        of_field = any(each.scale == ATLAS for each in report.claims)
        yield PageSection("claims", "Claims" if of_field else "The paper's claims", _claims(report.claims))
    if report.comparisons:
        title = "How far the published numbers are met"
        yield PageSection("numbers", title, reproduction_section(report.comparisons))
    if lead is not None or has_atlas:
        yield PageSection("results", "Results by sweep", results)
    failures = _fill("failures", failures=report.failures, most_ids=MOST_IDS, report=report)
    yield PageSection("failures", "Failures", failures)
    rows = [_origin_row(origin) for origin in report.origins]
    yield PageSection("provenance", "What it ran on", _fill("provenance", rows=rows))
    reproduce = _fill("reproduce", report=report, best_trial_rows=_best_trial_rows, headers=BEST_TRIAL_HEADINGS)
    yield PageSection("reproduce", "Every number and how to get it again", reproduce)


def _claims(claims: Sequence[ClaimsAtScale]) -> Markup:
    return _fill(
        "claims",
        claims=claims,
        learned=LEARNED,
        failed=FAILED,
        marks=VERDICT_MARKS,
        verdict_text=verdict_text,
        evidence_text=evidence_text,
        sureness_text=sureness_text,
    )


def _atlas(atlas: Atlas, gallery: Gallery) -> Markup:
    drawings = [drawing for drawing in gallery.drawings if drawing.sweep == SWEEP]
    return _fill("atlas", atlas=atlas, drawings=drawings, rows=_disagreements(atlas))


def _disagreements(atlas: Atlas) -> list[list[str]]:
    """Return a row for every tile where theory and measurement disagree, with its evidence."""
    return [
        [
            tile.model,
            short_title(tile.task),
            f"{tile.prediction.verdict}: {tile.prediction.reason} ({tile.prediction.citation})",
            f"{tile.num_learned} of {tile.num_finished}",
            ", ".join(f"{length}: {accuracy:.2f}" for length, accuracy in tile.by_length.items()),
            tile.remark,
            ", ".join(f"{trial_id} {accuracy:.2f}" for trial_id, accuracy in tile.accuracies.items()),
        ]
        for tile in atlas.disagreements
    ]


def _facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    """Yield the numbers at the top of the page, each with what it counts."""
    failed = {trial_id for group in report.failures for trial_id in group.trial_ids} & report.trial_ids
    yield f"{report.num_done:,} of {report.num_planned:,}", "trials finished"
    if report.comparisons:
        found = agreement(report.comparisons)
        yield f"{found.num_ours:,} of {found.num_distinct:,}", "published numbers have ours beside them"
        yield f"{found.num_within:,}", f"of them agree within {found.tolerance:g}"
    yield f"{len(failed):,}", "trials failed"
    yield duration(sum(origin.seconds for origin in report.origins)), "of training and testing"
    num_machines = len({origin.host for origin in report.origins})
    yield f"{num_machines:,}", "machine" if num_machines == 1 else "machines"


def _tally_rows(found: Reproduction) -> list[list[str]]:
    rows = (row.values() for row in tally_table(found).to_pylist())
    return [[table, *map(_thousands, counts)] for table, *counts in rows]


def _best_trial_rows(sweep: SweepResult) -> list[list[str]]:
    """Return the columns of `BEST_TRIAL_HEADINGS` for each cell with results."""
    shown = BEST_TRIAL_HEADINGS[:-1]
    return [
        [
            *(text for name, text in zip(HEADINGS, cell_row(each), strict=True) if name in shown),
            scores[OOD].best_trial or "",
        ]
        for each in sweep.cells
        if (scores := each.joined.summary.scores) is not None
    ]


def _origin_row(origin: Origin) -> list[str]:
    commit = (origin.git_commit or "not a checkout")[:12] + (" with edits" if origin.git_dirty else "")
    packages = ", ".join(f"{name} {version}" for name, version in origin.packages.items())
    if origin.mamba_kernel:
        packages += f"; Mamba scan: {origin.mamba_kernel}"
    elif origin.kernel:
        packages += f"; kernels: {origin.kernel}"
    return [
        *(origin.host, origin.device, str(origin.threads), _thousands(origin.num_trials), duration(origin.seconds)),
        *(_minute(origin.first), _minute(origin.last), commit, packages),
    ]


def _svg(drawing: Drawing) -> Markup:
    return Markup(svg_element(drawing.figure, drawing.name, drawing.title))


def _html(drawing: Drawing) -> Markup:
    assert drawing.on_page is not None, "other figures are shown as printed"
    return Markup(drawing.on_page())


def _thousands(count: int) -> str:
    return f"{count:,}"


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _column_names(rows: Sequence[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _cells(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[list[str]]:
    return [[row.get(name, "") for name in names] for row in rows]
