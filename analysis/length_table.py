"""Who generalises: a sweep's results as accuracy against length, the better of the learning rates and seeds."""

import json
from collections.abc import Collection
from typing import Any

from orch.core.errors import OrchError
from orch.store import Store
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import model_from_dict


def length_rows(
    store: Store, trial_ids: Collection[str], definitions: Definitions = BUILT_IN_DEFINITIONS
) -> list[dict[str, Any]]:
    """One row per model and task of these trials: what the best of them scores in validation and at each length."""
    table = store.read("trials", ["trial_id", "config", "validation_accuracy", "ood_accuracy", "length_curve"])
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.to_pylist():
        if row["trial_id"] in trial_ids:
            config = json.loads(row["config"])
            key = _model(config, definitions), f"{config['task']['name']} modulo {config['task']['modulus']}"
            if key not in best or _rank(row) > _rank(best[key]):
                best[key] = row | {"inputs": f"{config['min_inputs']}–{config['max_inputs']}"}
    rows = []
    for (model, task), row in sorted(best.items(), key=lambda item: (item[0][1], [-rank for rank in _rank(item[1])])):
        scores = {row["inputs"]: row["validation_accuracy"]}
        scores |= {str(point["length"]): point["accuracy"] for point in row["length_curve"]}
        rows.append({"task": task, "model": model} | {name: f"{value:.2f}" for name, value in scores.items()})
    return rows


def _model(config: dict[str, Any], definitions: Definitions) -> str:
    """Return the model with its variant or, where its code is absent, with its settings."""
    try:
        model = model_from_dict(config["model"], definitions)
        name, variant = model.name, model.summary
    except OrchError:
        settings = dict(config["model"])
        name = settings.pop("name")
        variant = ", ".join(f"{setting} {value}" for setting, value in settings.items())
    return f"{name} ({variant})" if variant else name


def _rank(row: dict[str, Any]) -> tuple[float, float, float]:
    """By accuracy at the test length; but what differs there by less than a tenth, by validation accuracy first."""
    far, near = row["ood_accuracy"] or 0.0, row["validation_accuracy"] or 0.0
    return round(far, 1), round(near, 2), far
