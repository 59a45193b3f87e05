"""Tables as HTML: fragments with classes for `stylesheet`, which load nothing from the network."""

from collections.abc import Iterator
from importlib import resources
from itertools import takewhile
from typing import NamedTuple

from markupsafe import Markup

from orch.analysis.html_templates import open_templates
from orch.analysis.tables.colour import DARK, LIGHT, NUM_STEPS, Ramp, background, ink, step_of
from orch.analysis.tables.entries import PUBLISHED, Piece, TableEntry
from orch.analysis.tables.layout import PaperTable, Section

_PACKAGE = "orch.analysis.tables"


class RowLabel(NamedTuple):
    """A label that spans one or more rows."""

    text: str
    num_rows: int


def stylesheet() -> str:
    """Return the styles that the tables of a page share."""
    return resources.files(_PACKAGE).joinpath("paper_table.css").read_text() + ramp_stylesheet(".paper-table")


def ramp_stylesheet(within: str) -> str:
    """Return the colours of accuracies, light and dark, for the classes a0, a1, … of elements within a selector."""
    light, dark = ("\n".join(_ramp_styles(ramp, within)) for ramp in (LIGHT, DARK))
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _ramp_styles(ramp: Ramp, within: str) -> Iterator[str]:
    for step in range(NUM_STEPS + 1):
        colour = background(step / NUM_STEPS, ramp)
        yield f"{within} .a{step} {{ background-color: {colour}; color: {ink(colour)}; }}"


def render_html(table: PaperTable, details: PaperTable | None = None) -> str:
    """Write a table as HTML; `details`, the same table by another reading, is folded away below it."""
    template = open_templates(_PACKAGE).get_template("paper_table.html.j2")
    return template.render(
        table=table,
        details=details,
        num_steps=NUM_STEPS,
        step_of=step_of,
        small_lines=small_lines,
        row_labels=row_labels,
    )


def paragraph(text: str) -> str:
    """Return a text as a paragraph of notes."""
    return Markup('<p class="notes">{}</p>').format(text)


def row_labels(section: Section, place: int) -> list[RowLabel]:
    """Return the labels of a row, without those that span it from a row above. The last label never spans rows."""
    row, below = section.rows[place], section.rows[place:]
    above = section.rows[place - 1].labels if place else ()
    labels = []
    for end, text in enumerate(row.labels[:-1], start=1):
        if above[:end] != row.labels[:end]:
            same = takewhile(row.labels[:end].__eq__, (other.labels[:end] for other in below))
            labels.append(RowLabel(text, len(list(same))))
    return [*labels, RowLabel(row.labels[-1], 1)]


def small_lines(table: PaperTable, entry: TableEntry) -> list[list[Piece]]:
    """Return the texts below our number, up to two on a line; the published value begins a line."""
    lines: list[list[Piece]] = [[]]
    for piece in table.pieces(entry)[1:]:
        if piece.name == PUBLISHED or len(lines[-1]) == 2:
            lines.append([])
        lines[-1].append(piece)
    shown = [[piece for piece in line if piece.text] for line in [*lines, [Piece("also", entry.also)]]]
    return [line for line in shown if line]
