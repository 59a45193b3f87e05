"""Tables as Markdown: one for each section and group of columns, so that none is wider than a page."""

import re
from collections.abc import Sequence

from orch.analysis.tables.entries import PUBLISHED, TableEntry
from orch.analysis.tables.layout import PaperTable


def render_markdown(table: PaperTable) -> str:
    """Write a table as several Markdown tables with headings and notes."""
    first, *others = table.lines
    parts = [f"### {escape(table.title)}", f"{escape(table.caption)} Each cell: {first} ({', '.join(others)})."]
    for section in table.sections:
        for position, group in enumerate(table.groups):
            parts.append(f"**{escape(' · '.join(filter(None, (section.heading, group.heading))))}**")
            header = [escape(text) for text in (*table.corner_headings, *group.columns)]
            body = [
                [*map(escape, row.labels), *(_cell(table, entry) for entry in row.entries[position])]
                for row in section.rows
            ]
            parts.append(_rows(header, body, len(table.headings)))
    parts.append(escape(" ".join(table.remarks)))
    parts.append(f"Marks: {escape(table.legend_text)}." if table.legend else "")
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows(header: Sequence[str], body: Sequence[Sequence[str]], num_labels: int) -> str:
    align = ["---"] * num_labels + ["---:"] * (len(header) - num_labels)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, align, *body))


def _cell(table: PaperTable, entry: TableEntry) -> str:
    texts = []
    for name, text, marks, bold in table.pieces(entry):
        shown = escape(text + marks) + (f" {entry.also}" if name == PUBLISHED and entry.also else "")
        texts.append(f"**{shown}**" if bold else shown)
    ours, *others = filter(None, texts)
    return f"{ours} ({', '.join(others)})" if others else ours


def escape(text: str) -> str:
    """Escape a text so that it has no emphasis, no links, no HTML and no column breaks."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
