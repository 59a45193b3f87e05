"""A finished trial as rows: one of `trials` and several of `curves`."""

import dataclasses
import datetime
import json
from collections.abc import Mapping
from typing import Any

from orch.core.errors import UnknownName
from orch.core.reading import Refused, parse_json
from orch.core.settings import to_dict
from orch.core.shape import checked
from orch.store.columns import PROVENANCE
from orch.sweeps.result import Result
from orch.sweeps.trial import TRAINER_REVISION

_PROVENANCE = {column.name for column in PROVENANCE}


def trial_row(result: Result, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of `trials` for a result.

    `provenance` has `attempt_id` and whatever else is known of `columns.PROVENANCE`; without `finished_at` it is now.
    """
    for name in provenance:
        if name not in _PROVENANCE:
            raise UnknownName("provenance", name, _PROVENANCE)
    assert provenance.get("attempt_id"), "a result belongs to an attempt"
    trial, task, model = result.trial, result.trial.task, result.trial.model
    last = result.curve[-1] if result.curve else None

    def raw(normalised: float | None) -> float | None:
        return None if normalised is None else task.denormalise(normalised)

    validation_accuracy = last.validation_accuracy if last else None
    return {
        "trial_id": trial.id,
        **to_dict(trial),
        "task": task.name,
        "model": model.name,
        **to_dict(task),
        **to_dict(model),
        "config": json.dumps(trial.to_dict()),
        "task_revision": task.revision,
        "model_revision": model.revision,
        "trainer_revision": TRAINER_REVISION,
        "stop_reason": str(result.stop_reason),
        "steps_trained": result.steps,
        "train_loss": last.train_loss if last else None,
        "validation_loss": last.validation_loss if last else None,
        "validation_accuracy": validation_accuracy,
        "validation_accuracy_raw": raw(validation_accuracy),
        "ood_accuracy": result.ood_accuracy,
        "ood_accuracy_raw": raw(result.ood_accuracy),
        "accuracy_100": result.test_accuracy.get(100),
        "accuracy_200": result.test_accuracy.get(200),
        "length_curve": [
            {
                "length": length,
                "accuracy": accuracy,
                "accuracy_raw": raw(accuracy),
                "majority": result.majority.get(length),
            }
            for length, accuracy in sorted(result.test_accuracy.items())
        ],
        "validation_accuracy_all": last.validation_accuracy_all if last else None,
        "ood_accuracy_all": result.ood_accuracy_all,
        "length_curve_all": [
            {"length": length, "accuracy": accuracy, "accuracy_raw": raw(accuracy)}
            for length, accuracy in sorted(result.test_accuracy_all.items())
        ]
        or None,
        **result.horizons,
        "num_parameters": model.num_parameters(trial.vocabulary),
        "seconds": result.seconds,
        "finished_at": datetime.datetime.now(datetime.UTC),
        **{name: value for name, value in provenance.items() if value is not None},
        "packages": _as_json(provenance.get("packages")),
    }


def parse_packages(text: str | None) -> dict[str, str]:
    """Return the versions of packages that a row of `trials` has as JSON; nothing if it has none that can be read."""
    try:
        return dict(checked(parse_json(text or "{}"), dict[str, str]))
    except Refused:
        return {}


def curve_rows(result: Result, attempt_id: str) -> list[dict[str, Any]]:
    """Return the rows of `curves` for a result."""
    identity = {"trial_id": result.trial.id, "attempt_id": attempt_id}
    return [identity | dataclasses.asdict(point) for point in result.curve]


def _as_json(packages: Mapping[str, str] | str | None) -> str | None:
    return packages if packages is None or isinstance(packages, str) else json.dumps(dict(packages), sort_keys=True)
