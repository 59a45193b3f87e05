"""Requests to train a unit, as a driver sends them to its workers."""

from collections.abc import Sequence
from typing import Any

from orch.running.options import DEFAULT_TRAINING
from orch.running.worker_messages import UnitRequest
from orch.store import Store
from orch.sweeps.trial import Trial


def unit_request(store: Store, trials: Sequence[Trial], **others: Any) -> UnitRequest:
    """Return a request for these trials on one thread, with checkpoints all the time, but for what `others` say."""
    request = UnitRequest(
        trials=[trial.to_dict() for trial in trials],
        attempts={trial.id: f"attempt {trial.id}" for trial in trials},
        store=store.uri,
        driver_id="driver",
        on_cluster=False,
        device="cpu",
        threads=1,
        checkpoint_seconds=0.0,
        weights_limit=0,
        training=DEFAULT_TRAINING,
        code=[],
        git_commit=None,
        git_dirty=None,
    )
    assert others.keys() <= request.keys()
    request.update(others)  # type: ignore[typeddict-item]
    return request
