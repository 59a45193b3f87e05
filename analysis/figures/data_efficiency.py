"""Figure: how many training examples a model needs, from fixed training sets of ten inputs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from orch.analysis.aggregate import scored
from orch.analysis.figures.axes import accuracy_axis, add_lines, logarithmic_axis, short
from orch.analysis.figures.line import Line, LinePoint, from_points
from orch.analysis.figures.plotted_cell import PlottedCell
from orch.analysis.figures.sheet import legend_of, make_sheet, moduli
from orch.analysis.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONG = ("train_examples", "steps")
"""A model's cells differ in these."""

CAPTION = (
    "Accuracy at {length} inputs (0 is chance, 1 is perfect) against the number of training examples, each of"
    " {trained} inputs: the mean over seeds, within their range, with the learning rate that did best for the model in"
    " Table 1. So that none hides another, markers of one size stand side by side, and equal lines are stacked."
)


def lines(entries: Iterable[PlottedCell]) -> list[Line]:
    """One for each model and task, over the sizes that are finished."""
    return from_points(
        LinePoint(entry, entry.trial.train_examples, [scored(row["ood_accuracy"]) for row in entry.chosen])
        for entry in entries
    )


@styled
def draw(lines: Sequence[Line], title: str) -> "Figure":
    """A row for each task, a column for each modulus."""
    tasks = {line.task.name: line.task.title_of() for line in lines}
    legend = legend_of(lines)
    columns = moduli(lines)
    sheet = make_sheet(
        title, "Training examples", [f"m = {modulus}" for modulus in columns], [legend] + [{}] * (len(tasks) - 1)
    )
    sizes = sorted({size for line in lines for size in line.x})
    ticks = {size: short(size) for size in sizes if len(sizes) < 3 or size in (sizes[0], 1000, sizes[-1])}
    for (task, name), panels in zip(tasks.items(), sheet.panels, strict=True):
        panels[0].set_ylabel(f"{name}\naccuracy")
        for modulus, axes in zip(columns, panels, strict=True):
            logarithmic_axis(axes, (0.6 * sizes[0], 1.6 * sizes[-1]), ticks)
            accuracy_axis(axes, lines)
            add_lines(axes, [line for line in lines if (line.task.name, line.task.modulus) == (task, modulus)])
    return sheet.figure
