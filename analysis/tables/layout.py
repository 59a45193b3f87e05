"""The layout of a published table with our numbers, shared by all renderings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orch.analysis.agreement import TOLERANCE, Agreement, agreement
from orch.analysis.comparison import Comparison
from orch.analysis.published import TABLES, PublishedCell, published_cells
from orch.analysis.tables.axes import AXES, Axes
from orch.analysis.tables.caption import caption, notes
from orch.analysis.tables.entries import (
    DIFFERENCE,
    LEGEND,
    PUBLISHED,
    READINGS,
    Piece,
    TableEntry,
    TableStyle,
    entry_of,
)
from orch.core.errors import UnknownName
from orch.sweeps.scales import Scale


@dataclass(frozen=True, slots=True)
class Group:
    """Columns under one heading."""

    heading: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its labels and its cells."""

    labels: tuple[str, ...]
    entries: tuple[tuple[TableEntry, ...], ...]
    """One tuple for each group, with one entry for each of its columns."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under one heading."""

    heading: str
    """Empty if the table has only one section."""
    rows: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A published table with our numbers, laid out for any rendering."""

    name: str
    title: str
    caption: str
    """The published statistic and ours."""
    lines: tuple[str, ...]
    """Names of the texts in each cell, ours first."""
    headings: tuple[str, ...]
    """Headings over the labels of the rows."""
    columns: str
    """Name of what distinguishes the columns of a group, such as the modulus."""
    groups: tuple[Group, ...]
    sections: tuple[Section, ...]
    agreement: Agreement
    notes: tuple[str, ...]

    @property
    def entries(self) -> list[TableEntry]:
        return [entry for section in self.sections for row in section.rows for group in row.entries for entry in group]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences below the table: the agreement, if differences are shown, and the notes."""
        return (f"{self.agreement}.", *self.notes) if DIFFERENCE in self.lines else self.notes

    @property
    def legend(self) -> dict[str, str]:
        """The marks that occur in the table and what they mean."""
        shown = "".join(entry.marks + entry.marks_published + entry.lines[0] for entry in self.entries)
        return {mark: meaning for mark, meaning in LEGEND.items() if mark in shown}

    @property
    def legend_text(self) -> str:
        return "; ".join(f"{mark} {meaning}" for mark, meaning in self.legend.items())

    @property
    def corner_headings(self) -> tuple[str, ...]:
        """The headings, the last one followed by what distinguishes the columns."""
        return (*self.headings[:-1], f"{self.headings[-1]} \\ {self.columns.lower()}")

    def pieces(self, entry: TableEntry) -> list[Piece]:
        """Return the texts of a cell with their marks, ours first."""
        marks = {self.lines[0]: entry.marks, PUBLISHED: entry.marks_published}
        return [
            Piece(name, text, marks.get(name, ""), bold=name == DIFFERENCE and entry.beyond)
            for name, text in zip(self.lines, entry.lines, strict=True)
        ]


Place = tuple[str, str]
"""The headings of a group and of a column in it."""


def lay_out(
    name: str, comparisons: Iterable[Comparison], scale: Scale, reading: str = "paper", tolerance: float = TOLERANCE
) -> PaperTable | None:
    """Lay out the published table of that name; return None if the scale plans nothing of it."""
    for kind, given, known in (("table", name, TABLES), ("reading", reading, READINGS)):
        if given not in known:
            raise UnknownName(kind, given, known)
    chosen = [each for each in comparisons if each.published.table == name]
    if not chosen:
        return None
    axes, style = AXES[name], READINGS[reading]
    places, rows = _arrange(name, chosen, axes)
    planned = {place for cells in rows.values() for readings in cells.values() for place in readings}
    groups: dict[str, list[str]] = {}
    for heading, column in places:
        if (heading, column) in planned:
            groups.setdefault(heading, []).append(column)
    sections: dict[str, list[TableRow]] = {}
    for (section, _), cells in rows.items():
        for labels, found in cells.items():
            row = _row(labels, found, groups, style, tolerance)
            sections.setdefault(section, []).append(row)
    return PaperTable(
        name=name,
        title=TABLES[name].title,
        caption=caption(chosen, scale, style),
        lines=style.lines,
        headings=axes.headings,
        columns=axes.columns,
        groups=tuple(Group(heading, tuple(columns)) for heading, columns in groups.items()),
        sections=tuple(
            Section(heading if len(sections) > 1 else "", tuple(found)) for heading, found in sections.items()
        ),
        agreement=agreement(chosen, tolerance),
        notes=tuple(notes(chosen, scale, style, tolerance)),
    )


RowKey = tuple[str, tuple[str, ...]]
"""A section and the labels of a published row, which may have several rows of ours: one for each reading."""


def _arrange(
    name: str, comparisons: Iterable[Comparison], axes: Axes
) -> tuple[list[Place], dict[RowKey, dict[tuple[str, ...], dict[Place, Comparison]]]]:
    """Return all columns, and all rows with our numbers by column, in the published order."""
    by_number: dict[PublishedCell, list[Comparison]] = {}
    for each in comparisons:
        by_number.setdefault(each.published, []).append(each)
    places: dict[Place, None] = {}
    rows: dict[RowKey, dict[tuple[str, ...], dict[Place, Comparison]]] = {}
    for number in published_cells(name):
        place = (axes.group(number), axes.column(number))
        places[place] = None
        row = rows.setdefault((axes.section(number), axes.labels(number, "")), {})
        for each in by_number.get(number, ()):
            row.setdefault(axes.labels(number, each.reading), {})[place] = each
    return list(places), rows


def _row(
    labels: tuple[str, ...],
    cells: Mapping[Place, Comparison],
    groups: Mapping[str, list[str]],
    style: TableStyle,
    tolerance: float,
) -> TableRow:
    entries = (
        tuple(entry_of(cells.get((heading, column)), style, tolerance) for column in columns)
        for heading, columns in groups.items()
    )
    return TableRow(labels, tuple(entries))
