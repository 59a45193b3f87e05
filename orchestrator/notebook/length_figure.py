"""The figure of a study of one's own: accuracy against the number of inputs."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orch.core.errors import OrchError
from orch.sweeps.measured import accuracies_by_length
from orch.sweeps.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

MARKERS = "osD^vP*X<>"


def draw(results: "pd.DataFrame", trials: "pd.DataFrame", planned: Sequence[Trial]) -> Any:
    """Draw a panel for each task and a line for each model: the mean over the seeds of its chosen learning rate.

    The shaded band reaches from the worst to the best of these seeds. Dots are the tested lengths, and the dotted line
    is the longest sequence in training. Return the axes, or an array of them if there are several tasks.
    """
    from matplotlib import pyplot

    if trials.empty:
        raise OrchError("no trial has finished, so there is nothing to draw: study.resume() continues the study")
    known = {trial.id: trial for trial in planned}
    settings = [name for name in results if name in trials and name != "task"]
    finished = {trial.task.name: trials[trials["task"] == trial.task.name] for trial in planned}
    of_task = {task: found for task, found in finished.items() if not found.empty}
    _, axes = pyplot.subplots(
        1, len(of_task), figsize=(1.6 + 3.4 * len(of_task), 3.2), sharey=True, squeeze=False, layout="constrained"
    )
    looks: dict[str, tuple[str, str]] = {}
    for panel, (task, mine) in zip(axes[0], of_task.items(), strict=True):
        lengths: set[int] = set()
        for _, row in results[results["task"] == task].iterrows():
            chosen = mine[mine["learning_rate"] == row["chosen_rate"]]
            for name in settings:
                chosen = chosen[[_same(value, row[name]) for value in chosen[name]]]
            if "variant" in results:
                kept = [known[key].model.full_summary == row["variant"] for key in chosen["trial_id"]]
                chosen = chosen[kept]
            if chosen.empty:
                continue
            label = _label(known[chosen["trial_id"].iloc[0]], row, settings)
            colour, marker = looks.setdefault(label, (f"C{len(looks) % 10}", MARKERS[len(looks) % len(MARKERS)]))
            lengths |= _add_line(panel, chosen, label, colour, marker)
        trial = known[mine["trial_id"].iloc[0]]
        panel.axvline(trial.max_inputs, color="0.6", linestyle=":", linewidth=1)
        panel.set(title=trial.task.title_of(None), xlabel="number of inputs", xscale="log")
        panel.set_xticks(sorted(lengths), [str(length) for length in sorted(lengths)])
        panel.minorticks_off()
        panel.grid(axis="y", color="0.9")
    axes[0][0].set_ylabel("accuracy (0 chance, 1 perfect)")
    lines = {line.get_label(): line for panel in axes[0] for line in panel.get_lines() if line.get_label() in looks}
    axes[0][-1].legend(
        handles=[lines[label] for label in looks],
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        frameon=False,
        fontsize="small",
    )
    return axes[0][0] if len(of_task) == 1 else axes[0]


def _add_line(panel: Any, trials: "pd.DataFrame", label: str, colour: str, marker: str) -> set[int]:
    """Add the mean accuracy of trials and its range at each measured length; return these lengths."""
    rows = zip(trials["length_curve"], trials["stop_reason"], strict=True)
    curves = [accuracies_by_length({"length_curve": list(curve), "stop_reason": reason}) for curve, reason in rows]
    lengths = sorted({length for curve in curves for length in curve})
    scores = [[curve[length] for curve in curves if length in curve] for length in lengths]
    means = [sum(found) / len(found) for found in scores]
    panel.plot(lengths, means, label=label, color=colour, marker=marker, ms=4)
    panel.fill_between(lengths, [*map(min, scores)], [*map(max, scores)], color=colour, alpha=0.15, lw=0)
    return set(lengths)


def _label(trial: Trial, row: Any, settings: Sequence[str]) -> str:
    """Return the name of a line: the model, its variant, and the settings by which it differs from others."""
    variant = f" ({trial.model.full_summary})" if trial.model.full_summary else ""
    others = [
        f"{name.replace('_', ' ')} {row[name]}" for name in settings if name != "model" and not _missing(row[name])
    ]
    return f"{trial.model.name}{variant}" + (f", {', '.join(others)}" if others else "")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _same(one: Any, other: Any) -> bool:
    if _missing(one) or _missing(other):
        return _missing(one) and _missing(other)
    return (
        bool(list(one) == list(other)) if hasattr(one, "__len__") and not isinstance(one, str) else bool(one == other)
    )
