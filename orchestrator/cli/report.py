"""`orch report`: the paper's tables and figures, with our numbers next to the published ones."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orch.cli._options import WRITTEN, OutputPath, scale_options, store_option
from orch.cli._output import echo, echo_data, echo_laid_out
from orch.cli._sweeps import SUFFIX, say_note, sweeps_argument
from orch.cli._tables import print_rows
from orch.core.counted import counted
from orch.core.errors import InvalidSettings

if TYPE_CHECKING:
    from orch.analysis.comparison import Comparison


@click.command()
@sweeps_argument()
@scale_options("of a recorded sweep of your own, the scale it was run at last; else that of most trials")
@store_option
@click.option(
    "--format",
    "kind",
    type=click.Choice(["html", "terminal", "markdown", "latex"]),
    default="html",
    show_default=True,
    help="html: one page with everything. The others: only the tables, on the terminal or in --output: the paper's with"
    " ours beside it, and one for each sweep without published numbers, such as your own.",
)
@click.option(
    "--output",
    type=OutputPath(path_type=Path, dir_okay=False, endings=WRITTEN),
    help="File to write.  [html: report.html]",
)
@click.option(
    "--reading",
    type=click.Choice(["paper", "ours"]),
    default="paper",
    show_default=True,
    help="paper: the best over learning rates and seeds. ours: mean and spread at the chosen learning rate.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write each figure into this folder, as SVG, PDF and PNG.",
)
@click.option(
    "--captions",
    is_flag=True,
    help="With --figures: also write NAME.tex beside each figure, a LaTeX float with the PDF, its caption and a label.",
)
@click.option(
    "--check",
    type=click.FloatRange(min=0),
    metavar="TOLERANCE",
    help="Only list the numbers that differ by more than this from the published ones; exit with 1 if there are any.",
)
def report(
    sweeps: tuple[str, ...],
    scale: str | None,
    store: str,
    kind: str,
    output: Path | None,
    reading: str,
    figures: Path | None,
    captions: bool,
    check: float | None,
) -> None:
    """Make tables and figures, on one page or as files for a paper.

    Where there are published numbers, they stand beside ours. The page also has failures, machines, and how to
    reproduce each number. A sweep need not be finished. It can be your own file, or the name that orch status shows for
    it, which runs the code that is recorded in the store. Sweeps without published numbers have a table of their own.
    Captions say at which length the learning rates were chosen. Without arguments, the page shows what the store has:
    first your own sweeps, without running their code, then those of the paper.

    \b
    Example: orch report main --check 0.05
    """
    from orch.analysis.report.collect import collect
    from orch.store import Store
    from orch.usercode import name_sweeps

    if captions and figures is None:
        raise InvalidSettings(["--captions stand beside figures: add --figures FOLDER"])
    opened = Store.open(store)
    named = name_sweeps(sweeps, opened, scale)
    say_note(named)
    files = {
        name: str(Path(given).absolute())
        for name, given in zip(named.names, sweeps, strict=True)
        if given.endswith(SUFFIX)
    }
    found = collect(opened, named.names, named.scale, named.catalogue, files)
    if check is not None:
        sys.exit(1 if print_disagreements(found.comparisons, check) else 0)
    from orch.analysis.report.write import write_figures, write_text

    if kind != "html":
        from orch.analysis.report.tables import render_tables

        text = render_tables(found, kind, reading)
        if output is None and kind == "terminal":
            echo_laid_out(text)
        elif output is None:
            echo_data(text, nl=False)
        else:
            write_text(output, text)
    if kind == "html" or figures is not None:
        from orch.analysis.figures import figures as draw_figures
        from orch.analysis.report.page import page

        gallery = draw_figures(found.board, [sweep.name for sweep in found.sweeps])
        if figures is not None:
            echo(f"{counted(write_figures(figures, gallery, captions), 'figure')} in {figures}", err=True)
        if kind == "html":
            path = output or Path("report.html")
            write_text(path, page(found, gallery))
            echo(f"wrote {path}: {found.summary}")


def print_disagreements(comparisons: "Sequence[Comparison]", tolerance: float) -> int:
    """Print the numbers that differ by more than the tolerance and how many agree; return how many differ."""
    from orch.analysis.agreement import agreement, disagreements
    from orch.analysis.tables import disagreement_rows

    found = disagreements(comparisons, tolerance)
    if found:
        print_rows(disagreement_rows(found), title=f"Numbers that differ by more than {tolerance:g}")
    echo(str(agreement(comparisons, tolerance)))
    return len(found)
