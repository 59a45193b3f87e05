"""Rows printed for people."""

from collections.abc import Sequence
from typing import Any


def print_rows(rows: Sequence[dict[str, Any]], title: str) -> None:
    """A table on the terminal; the same columns without decoration when piped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0]:
        number = isinstance(rows[0][name], (int, float))
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table)
