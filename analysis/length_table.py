"""Accuracy by sequence length: a row for each cell of a run, at its best learning rate."""

import json
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any

from orch.analysis.aggregate import COLUMNS, scored
from orch.analysis.cells import WITHIN
from orch.analysis.differing_settings import distinguish
from orch.core.errors import OrchError
from orch.store import Store
from orch.sweeps.selection import Row, rows_of_best_rate
from orch.sweeps.trial import Trial, model_from_dict

TITLE = (
    "Accuracy by number of inputs (0 chance, 1 perfect): the mean over the seeds of the learning rate that does best at"
    " 100 inputs"
)


def length_rows(
    store: Store, trial_ids: Collection[str], trials: Mapping[str, Trial] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Return a row for each cell of these trials, with its accuracy in validation and at each tested length.

    The accuracies are means over the seeds of the best learning rate. The column of validation is named by the trained
    lengths if all cells share them, else "trained". A column `settings` distinguishes cells of one model and task. Rows
    are sorted by task, the most accurate model first. Models of a user's code are named with their variant if `trials`
    has one of their trials, by id.
    """
    cells: dict[str, list[Row]] = {}
    configs: dict[str, dict[str, Any]] = {}
    for row in store.read("trials", [*COLUMNS, "config", "length_curve"]).to_pylist():
        if row["trial_id"] in trial_ids:
            config = json.loads(row["config"])
            settings = {name: value for name, value in config.items() if name not in WITHIN}
            key = json.dumps(settings, sort_keys=True)
            cells.setdefault(key, []).append(row)
            configs[key] = settings
    named = {
        key: (_task(config), _model(config, trials.get(cells[key][0]["trial_id"]))) for key, config in configs.items()
    }
    texts = distinguish([(named[key], _settings(config)) for key, config in configs.items()])
    differences = dict(zip(configs, texts, strict=True))
    chosen = {key: rows_of_best_rate(rows) for key, rows in cells.items()}
    ranges = {f"{config['min_inputs']}–{config['max_inputs']}" for config in configs.values()}
    trained = ranges.pop() if len(ranges) == 1 else "trained"
    ordered = sorted(chosen, key=lambda key: (named[key][0], [-score for score in _rank(chosen[key])]))
    return [
        {"task": named[key][0], "model": named[key][1]}
        | ({"settings": differences[key]} if any(differences.values()) else {})
        | {
            name: f"{value:.2f}"
            for name, value in ({trained: _mean(chosen[key], "validation_accuracy")} | _curve(chosen[key])).items()
        }
        for key in ordered
    ]


def _curve(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean accuracy over these rows at each tested length."""
    curves = [{point["length"]: point["accuracy"] for point in row["length_curve"] or ()} for row in rows]
    return {str(length): fmean(scored(curve.get(length)) for curve in curves) for length in max(curves, key=len)}


def _mean(rows: Sequence[Row], metric: str) -> float:
    return fmean(scored(row[metric]) for row in rows)


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a trial and of its model, without the model and the task themselves."""
    settings = config["model"] | config
    return {name: value for name, value in settings.items() if name not in ("model", "task")}


def _task(config: Mapping[str, Any]) -> str:
    return f"{config['task']['name']} modulo {config['task']['modulus']}"


def _model(config: Mapping[str, Any], trial: Trial | None) -> str:
    """Return the model's name with its variant, or with all its settings if its code is not loaded."""
    try:
        model = model_from_dict(config["model"]) if trial is None else trial.model
        name, variant = model.name, model.summary
    except OrchError:
        settings = dict(config["model"])
        name = settings.pop("name")
        variant = ", ".join(f"{setting} {value}" for setting, value in settings.items())
    return f"{name} ({variant})" if variant else name


def _rank(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Return the key to sort by: test accuracy to a tenth, then validation accuracy, then test accuracy."""
    far, near = _mean(rows, "ood_accuracy"), _mean(rows, "validation_accuracy")
    return round(far, 1), round(near, 2), far
