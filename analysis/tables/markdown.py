"""Tables as Markdown: one for each section and group of columns, so that none is wider than a page."""

import re
from collections.abc import Sequence

from orch.analysis.tables.entries import DIFFERENCE, PUBLISHED, TableEntry
from orch.analysis.tables.layout import PaperTable


def render_markdown(table: PaperTable) -> str:
    first, *others = table.lines
    parts = [f"### {escape(table.title)}", f"{escape(table.caption)} Each cell: {first} ({', '.join(others)})."]
    for section in table.sections:
        for position, group in enumerate(table.groups):
            parts.append(f"**{escape(' · '.join(filter(None, (section.heading, group.heading))))}**")
            header = [*table.headings[:-1], f"{table.headings[-1]} \\ {table.columns}", *group.columns]
            body = [
                [*map(escape, row.labels), *(_cell(entry, table.lines) for entry in row.entries[position])]
                for row in section.rows
            ]
            parts.append(_rows([*map(escape, header)], body, len(table.headings)))
    legend = [f"{escape(mark)} {escape(meaning)}" for mark, meaning in table.legend.items()]
    parts += [" ".join(map(escape, table.remarks))] + ([f"Marks: {'; '.join(legend)}."] if legend else [])
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows(header: Sequence[str], body: Sequence[Sequence[str]], num_labels: int) -> str:
    align = ["---"] * num_labels + ["---:"] * (len(header) - num_labels)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, align, *body))


def _cell(entry: TableEntry, names: Sequence[str]) -> str:
    ours = escape(entry.lines[0] + entry.marks)
    texts = []
    for name, text in zip(names[1:], entry.lines[1:], strict=True):
        shown = escape(text)
        if name == PUBLISHED:
            shown += entry.marks_published + (f" {entry.also}" if entry.also else "")
        texts.append(f"**{shown}**" if name == DIFFERENCE and entry.beyond else shown)
    texts = [text for text in texts if text]
    return f"{ours} ({', '.join(texts)})" if texts else ours


def escape(text: str) -> str:
    """So that it reads as it is written: no emphasis, no links, no HTML, no new column."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
