"""A published table laid out with ours beside it: what stands where, for all renderings alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orch.analysis.agreement import TOLERANCE, Agreement, agreement
from orch.analysis.comparison import Comparison
from orch.analysis.published import TABLES, PublishedCell, published_cells
from orch.analysis.tables.axes import AXES, Axes
from orch.analysis.tables.caption import caption, notes
from orch.analysis.tables.entries import DIFFERENCE, LEGEND, READINGS, TableEntry, TableStyle, entry_of
from orch.core.errors import UnknownName
from orch.sweeps.scales import Scale


@dataclass(frozen=True, slots=True)
class Group:
    """Columns under one heading."""

    heading: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    labels: tuple[str, ...]
    entries: tuple[tuple[TableEntry, ...], ...]
    """By group and column."""


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    """Empty if there is only one."""
    rows: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True)
class PaperTable:
    name: str
    title: str
    caption: str
    """The published statistic and ours."""
    lines: tuple[str, ...]
    """What stands in each cell, ours first."""
    headings: tuple[str, ...]
    """Over the labels of the rows."""
    columns: str
    """What the columns are."""
    groups: tuple[Group, ...]
    sections: tuple[Section, ...]
    agreement: Agreement
    notes: tuple[str, ...]

    @property
    def entries(self) -> list[TableEntry]:
        return [entry for section in self.sections for row in section.rows for group in row.entries for entry in group]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said below it: how far ours agree, where differences are shown, and the notes."""
        return (f"{self.agreement}.", *self.notes) if DIFFERENCE in self.lines else self.notes

    @property
    def legend(self) -> dict[str, str]:
        """The marks that occur."""
        shown = "".join(entry.marks + entry.marks_published + entry.lines[0] for entry in self.entries)
        return {mark: meaning for mark, meaning in LEGEND.items() if mark in shown}


Place = tuple[str, str]
"""Group and column."""


def lay_out(
    name: str, comparisons: Iterable[Comparison], scale: Scale, reading: str = "paper", tolerance: float = TOLERANCE
) -> PaperTable | None:
    """The table of that name; nothing if the scale plans nothing of it."""
    for kind, given, known in (("table", name, TABLES), ("reading", reading, READINGS)):
        if given not in known:
            raise UnknownName(kind, given, known)
    chosen = [each for each in comparisons if each.published.table == name]
    if not chosen:
        return None
    axes, kind_of_cell = AXES[name], READINGS[reading]
    places, rows = _arrange(name, chosen, axes)
    planned = {place for cells in rows.values() for readings in cells.values() for place in readings}
    groups: dict[str, list[str]] = {}
    for heading, column in places:
        if (heading, column) in planned:
            groups.setdefault(heading, []).append(column)
    sections: dict[str, list[TableRow]] = {}
    for (section, _), cells in rows.items():
        for labels, beside in cells.items():
            row = _row(labels, beside, groups, kind_of_cell, tolerance)
            sections.setdefault(section, []).append(row)
    return PaperTable(
        name=name,
        title=TABLES[name].title,
        caption=caption(chosen, scale, kind_of_cell),
        lines=kind_of_cell.lines,
        headings=axes.headings,
        columns=axes.columns,
        groups=tuple(Group(heading, tuple(columns)) for heading, columns in groups.items()),
        sections=tuple(
            Section(heading if len(sections) > 1 else "", tuple(found)) for heading, found in sections.items()
        ),
        agreement=agreement(chosen, tolerance),
        notes=tuple(notes(chosen, scale, kind_of_cell, tolerance)),
    )


RowKey = tuple[str, tuple[str, ...]]
"""Section and labels, before ours are told apart by how they read the paper."""


def _arrange(
    name: str, comparisons: Iterable[Comparison], axes: Axes
) -> tuple[list[Place], dict[RowKey, dict[tuple[str, ...], dict[Place, Comparison]]]]:
    """All columns and all rows in the published order, and what ours stands where."""
    beside: dict[PublishedCell, list[Comparison]] = {}
    for each in comparisons:
        beside.setdefault(each.published, []).append(each)
    places: dict[Place, None] = {}
    rows: dict[RowKey, dict[tuple[str, ...], dict[Place, Comparison]]] = {}
    for number in published_cells(name):
        place = (axes.group(number), axes.column(number))
        places[place] = None
        row = rows.setdefault((axes.section(number), axes.labels(number, "")), {})
        for each in beside.get(number, ()):
            row.setdefault(axes.labels(number, each.reading), {})[place] = each
    return list(places), rows


def _row(
    labels: tuple[str, ...],
    beside: Mapping[Place, Comparison],
    groups: Mapping[str, list[str]],
    reading: TableStyle,
    tolerance: float,
) -> TableRow:
    entries = (
        tuple(entry_of(beside.get((heading, column)), reading, tolerance) for column in columns)
        for heading, columns in groups.items()
    )
    return TableRow(labels, tuple(entries))
