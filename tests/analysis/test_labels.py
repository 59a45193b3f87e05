"""Names of models in tables and figures: two settings never share one, not even on different tasks."""

from orch.analysis.figures.plotted_cell import _labels
from orch.analysis.report.collect import _distinguished
from orch.sweeps.cell import Cell
from orch.sweeps.trial import make_trial


def cell(task, **settings):
    return Cell([make_trial(task, "delta_product", **settings)])


def test_one_name_is_one_model_on_all_tasks():
    cells = [cell("parity_check", width=32), cell("even_pairs", width=32, heads=2, gated=True)]
    assert _distinguished(cells) == ["heads 4, gated no", "heads 2, gated yes"]
    assert _labels(cells, ()) == ["DeltaProduct, gated no, heads 4", "DeltaProduct, gated yes, heads 2"]


def test_a_width_that_depends_on_the_task_is_no_part_of_a_name():
    cells = [cell("parity_check", width=32), cell("even_pairs", width=64)]
    assert _distinguished(cells) == ["", ""]
    assert _labels(cells, ()) == ["DeltaProduct"] * 2
    assert _distinguished([*cells, cell("parity_check", width=16)]) == ["width 32", "", "width 16"]
