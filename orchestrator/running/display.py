"""The display of a run's progress: a live table on a terminal or in a notebook, and plain lines elsewhere."""

import html
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from orch.core.printable import printable
from orch.running.progress import Progress

LINE_SECONDS = 10.0
NOTEBOOK_SECONDS = 1.0
_COLUMNS = ("sweep", "done", "running", "failed", "best at test length", "")


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def announce(text: str) -> None:
    """Print a line about a run: on the output of a notebook's cell, elsewhere on stderr."""
    click.echo(printable(text), err=not in_notebook())


class Display:
    """Shows a `Progress` at intervals."""

    def __init__(self, progress: Progress, quiet: bool = False):
        self._progress, self._quiet = progress, quiet
        self._shown_at = time.monotonic()
        self._live: Any = None
        self._handle: Any = None
        """Output of a notebook's cell that can be replaced."""
        if quiet:
            return
        if in_notebook():
            display: Any = importlib.import_module("IPython.display")
            self._handle, self._html = display.DisplayHandle(), display.HTML
        elif sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def __enter__(self) -> "Display":
        if self._live is not None:
            self._live.__enter__()
        if self._handle is not None:
            self._handle.display(self._html(self.as_html()))
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)
        if self._handle is not None:
            self._guarded(lambda: self._handle.update(self._html(self.as_html())))

    def show(self) -> None:
        if self._live is not None:
            self._guarded(lambda: self._live.update(self._table()))
        elif self._handle is not None:
            self._every(NOTEBOOK_SECONDS, lambda: self._handle.update(self._html(self.as_html())))
        else:
            self._every(LINE_SECONDS, lambda: click.echo(printable(self._progress.line()), err=True))

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""
        text = printable(text)
        if self._live is not None:
            self._guarded(lambda: self._live.console.print(text, markup=False, highlight=False))
        else:
            self._guarded(lambda: announce(text))

    def _every(self, seconds: float, output: Callable[[], Any]) -> None:
        if time.monotonic() - self._shown_at > seconds:
            self._shown_at = time.monotonic()
            self._guarded(output)

    def _guarded(self, output: Callable[[], Any]) -> None:
        """Print, and be silent from then on if the terminal was closed, which must not end the sweep."""
        if not self._quiet:
            try:
                output()
            except OSError:
                self._quiet = True

    def _rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Return the cells of the table, a row for each sweep."""
        rows = []
        for name, count in self._progress.counts.items():
            best = "" if count.best is None else f"{count.best:.2f}"
            done = f"{count.done:,}/{count.total:,}"
            rows.append((name, done, str(count.running), str(count.failed), best, count.best_label))
        return rows

    def _table(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in ("sweep", "") else "right")
        for name, done, running, failed, best, label in self._rows():
            red = Text(failed, style="red" if failed != "0" else "dim")
            table.add_row(Text(printable(name)), done, running, red, best, Text(printable(label), style="dim"))
        progress = self._progress
        lines = [Text(f"  {printable(line)}") for line in progress.running_lines()]
        newest = [Text(f"  {printable(line)}", style="dim") for line in progress.newest]
        return Group(table, Text(printable(progress.line())), *lines, *newest)

    def as_html(self) -> str:
        """Return the table and the lines below it for a notebook."""

        def row(kind: str, cells: tuple[str, ...]) -> str:
            return "<tr>" + "".join(f"<{kind}>{html.escape(printable(cell))}</{kind}>" for cell in cells) + "</tr>"

        table = row("th", _COLUMNS) + "".join(row("td", cells) for cells in self._rows())
        progress = self._progress
        lines = [progress.line(), *progress.running_lines(), *progress.newest]
        below = "\n".join(html.escape(printable(line)) for line in lines)
        return f"<table>{table}</table><pre>{below}</pre>"
