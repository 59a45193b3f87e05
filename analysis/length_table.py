"""Accuracy by sequence length: a row for each cell of a run, at its best learning rate."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from orch.analysis.aggregate import COLUMNS, mean_of, where_chosen
from orch.analysis.cells import WITHIN
from orch.analysis.differing_settings import distinguish
from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.store import Store
from orch.sweeps.measured import Row, accuracies_by_length, measured
from orch.sweeps.result import StopReason
from orch.sweeps.selection import RateChoice, choose_rate
from orch.sweeps.trial import Trial, model_from_dict, parse_config, task_from_dict

TITLE = "Accuracy by number of inputs (0 chance, 1 perfect): the mean over the seeds of the learning rate chosen {}"
CHOSEN_AT = "chosen at"
_REVISIONS = ("model_revision", "task_revision")


class LengthTable(NamedTuple):
    """A table of accuracies by length, as texts; a missing value is None."""

    title: str
    rows: list[dict[str, str | None]]


def length_table(
    store: Store, trial_ids: Collection[str], trials: Mapping[str, Trial] = MappingProxyType({})
) -> LengthTable:
    """Return a row for each cell of these trials, with its accuracy in validation and at each tested length.

    The accuracies are means over the seeds of the best learning rate; the title, or else the column `chosen at`, says
    where that rate was chosen. A length that a cell was not tested at is missing. The column of validation is named
    by the trained lengths if all cells share them, else "trained". A column `settings` distinguishes cells of one
    model and task. Rows are sorted by task, the most accurate model first. Models and tasks of a user's code are
    named in their own words if `trials` has one of their trials, by id.
    """
    cells: dict[str, list[Row]] = {}
    configs: dict[str, dict[str, Any]] = {}
    for row in store.read("trials", [*COLUMNS, *_REVISIONS, "config"]).to_pylist():
        if row["trial_id"] in trial_ids:
            config = parse_config(row["config"])
            settings = {name: value for name, value in config.items() if name not in WITHIN}
            key = json.dumps([settings, [row[name] for name in _REVISIONS]], sort_keys=True)
            cells.setdefault(key, []).append(row)
            configs[key] = settings
    examples = {key: trials.get(rows[0]["trial_id"]) for key, rows in cells.items()}
    named = {key: (_task(config, examples[key]), _model(config, examples[key])) for key, config in configs.items()}
    texts = distinguish([(named[key], _settings(config)) for key, config in configs.items()])
    differences = dict(zip(configs, texts, strict=True))
    chosen = {key: choose_rate(rows) for key, rows in cells.items()}
    places = list(dict.fromkeys(choice.at.name for choice in chosen.values()))
    ranges = {f"{config['min_inputs']}–{config['max_inputs']}" for config in configs.values()}
    trained = ranges.pop() if len(ranges) == 1 else "trained"
    lengths = sorted({n for choice in chosen.values() for row in choice.rows for n in accuracies_by_length(row)})
    ordered = sorted(chosen, key=lambda key: (named[key][0], _rank(chosen[key].rows)))
    rows = [
        {"task": named[key][0], "model": named[key][1]}
        | ({"settings": differences[key]} if any(differences.values()) else {})
        | {trained: _text(chosen[key], "validation_accuracy")}
        | {str(length): _text(chosen[key], f"accuracy_{length}") for length in lengths}
        | ({CHOSEN_AT: chosen[key].at.name} if len(places) > 1 else {})
        | _remark(cells[key])
        for key in ordered
    ]
    return LengthTable(TITLE.format(_where(places)), rows)


def _remark(rows: Sequence[Row]) -> dict[str, str | None]:
    """Return a remark on trials of a cell that diverged, if there are any."""
    num_diverged = sum(row["stop_reason"] == StopReason.DIVERGED for row in rows)
    return {"remark": f"{num_diverged} of {counted(len(rows), 'trial')} diverged"} if num_diverged else {}


def _where(places: Sequence[str]) -> str:
    """Return where the learning rates of all cells were chosen, in words."""
    if len(places) != 1:
        return f"where the column {CHOSEN_AT!r} says"
    return where_chosen(places)


def _text(choice: RateChoice, metric: str) -> str | None:
    mean = _mean(choice.rows, metric)
    return None if mean is None else f"{round(mean, 2) + 0.0:.2f}"  # zero has no sign


def _mean(rows: Sequence[Row], metric: str) -> float | None:
    """Return the mean over the rows in which a metric was measured; None if there are none."""
    return mean_of(measured(row, metric) for row in rows)


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a trial and of its model, without the model and the task themselves."""
    settings = config["model"] | config
    return {name: value for name, value in settings.items() if name not in ("model", "task")}


def _task(config: Mapping[str, Any], trial: Trial | None) -> str:
    """Return the task's name with its settings in its own words, or with its modulus if its code is not loaded."""
    try:
        task = task_from_dict(config["task"]) if trial is None else trial.task
        return f"{task.name} {task.full_summary}".rstrip()
    except OrchError:
        return f"{config['task']['name']} modulo {config['task']['modulus']}"


def _model(config: Mapping[str, Any], trial: Trial | None) -> str:
    """Return the model's name with its variant, or with all its settings if its code is not loaded."""
    try:
        model = model_from_dict(config["model"]) if trial is None else trial.model
        name, variant = model.name, model.full_summary
    except OrchError:
        settings = dict(config["model"])
        name = settings.pop("name")
        variant = ", ".join(f"{setting} {value}" for setting, value in settings.items())
    return f"{name} ({variant})" if variant else name


def _rank(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Return the key to sort by: the highest test accuracy to a tenth, then validation accuracy, then test accuracy."""
    means = _mean(rows, "ood_accuracy"), _mean(rows, "validation_accuracy")
    far, near = (math.inf if mean is None else -mean for mean in means)
    return round(far, 1) if far < math.inf else far, round(near, 2) if near < math.inf else near, far
