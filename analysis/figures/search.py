"""Figure of a search: the score of each point against the training steps spent until then."""

from itertools import accumulate
from typing import TYPE_CHECKING

from orch.analysis.figures.style import FAINT, OURS, SOFT, styled
from orch.search.history import PointState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from orch.search.report import SearchReport


@styled()
def draw_search(report: "SearchReport") -> "Figure":
    """Draw finished points at their score and pruned ones at their validation accuracy; the line is the best so far."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 2.8), layout="constrained")
    axes = figure.add_subplot()
    results = sorted(report.results, key=lambda each: (each.at, each.number))
    points = list(zip(accumulate(each.spent for each in results), results, strict=True))
    finished = [(at, each.value) for at, each in points if each.value is not None]
    stopped = [(at, each.validation) for at, each in points if each.state is PointState.PRUNED]
    pruned = [(at, accuracy) for at, accuracy in stopped if accuracy is not None]
    if pruned:
        steps, scores = zip(*pruned, strict=True)
        axes.plot(steps, scores, "o", color=SOFT, markerfacecolor="white", markersize=4, label="pruned, by validation")
    if finished:
        steps, scores = zip(*finished, strict=True)
        best = list(accumulate(scores, max if report.question.objective.maximised else min))
        axes.step(steps, best, where="post", color=OURS, linewidth=1.1, label="best so far")
        axes.plot(steps, scores, "o", color=OURS, markersize=4, label="finished")
    if report.question.smallest is not None:
        axes.axhline(report.question.smallest.at_least, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlabel("training steps spent")
    axes.set_ylabel(report.question.objective.description)
    axes.set_xlim(left=0)
    if finished or pruned:
        axes.legend(loc="best")
    figure.suptitle(
        f"{report.question.model} on {report.question.task}: search by {', '.join(report.question.space.names)}"
    )
    return figure
