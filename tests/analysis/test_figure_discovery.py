"""A figure is one file: the report finds every file that is added to the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orch
from orch.analysis.figures.gallery import find_figures
from orch.sweeps.registry import SWEEPS

ADDED = '''
"""Figure: the number of finished trials."""

from collections.abc import Iterator

from orch.analysis.board import Board
from orch.analysis.figures.figure import Drawing, ReportFigure, require_results
from orch.analysis.figures.style import styled

TITLE = "Finished trials of {sweep}"


@styled()
def draw(count: int, title: str):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 1))
    figure.suptitle(f"{title}: {count}")
    return figure


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    require_results(board, sweep)
    title = TITLE.format(sweep=sweep)
    count = sum(len(cell.finished) for cell in board.cells(sweep))
    yield Drawing(f"finished-{sweep}", title, f"There are {count}.", sweep, draw(count, title))


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"factors", "angles"}))
'''

PROGRAM = """
import orch
from orch.analysis.figures import figures
from orch.analysis.report.collect import collect
from orch.analysis.report.page import page
from orch.store import Store

report = collect(Store.open("bundled"), ["factors"], "laptop")
gallery = figures(report.board, ["factors"])
print(orch.__file__, *(drawing.name for drawing in gallery.drawings), sep="\\n")
assert "Finished trials of factors" in page(report, gallery)
"""


def test_a_file_added_to_the_package_is_drawn_in_the_report(tmp_path: Path) -> None:
    source = Path(orch.__file__).resolve().parent
    copied = tmp_path / "orch"
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "analysis" / "figures" / "finished_trials.py").write_text(ADDED)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    imported, *drawn = run.stdout.splitlines()
    assert Path(imported).is_relative_to(tmp_path)
    assert drawn == ["factors", "finished-factors"]


def test_every_figure_names_only_known_sweeps() -> None:
    found = find_figures()
    assert [*found][:4] == ["hierarchy", "heatmap", "lengths", "learning"]
    assert {*found} >= {"angles", "data-efficiency", "factors"}
    for name, figure in found.items():
        assert figure.except_sweeps <= SWEEPS.keys(), name
        assert figure.sweeps is None or figure.sweeps <= SWEEPS.keys(), name


def test_a_sweep_that_no_figure_names_has_the_figures_of_every_sweep() -> None:
    assert [name for name, figure in find_figures().items() if figure.suits("mine")] == [
        "lengths",
        "learning",
        "profile",
    ]
