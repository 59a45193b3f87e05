"""Warnings of a training: in the worker's log, once each."""

import json

from orch.running.worker import DEFAULT_TRAINING, UnitRequest, UnitRun
from orch.store import Store
from orch.training import train
from tests.small import small_trial


class Impossible:
    def warm_up(self, step):
        step()

    def record(self, step):
        raise RuntimeError("operation not permitted when stream is capturing")


def test_a_step_that_cannot_be_recorded_is_logged_once_and_the_trial_finishes(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "find_recorder", lambda device: Impossible())
    store, trial = Store.open(tmp_path / "runs"), small_trial("rnn", steps=30)
    request = UnitRequest(
        trials=[trial.to_dict()],
        attempts={trial.id: "attempt"},
        store=store.uri,
        driver_id="driver",
        on_cluster=False,
        device="cpu",
        threads=1,
        checkpoint_seconds=60.0,
        weights_limit=0,
        training=DEFAULT_TRAINING,
        code=[],
        git_commit=None,
        git_dirty=None,
    )
    run = UnitRun(request)
    assert run.run_for(60)["done"]
    run.stop()
    (path,) = store.list_files("logs")
    events = [json.loads(line) for line in (store.get_bytes(path) or b"").splitlines()]
    warnings = [event["text"] for event in events if event["event"] == "warning"]
    assert len(warnings) == 1
    assert "cannot be recorded (operation not permitted when stream is capturing)" in warnings[0]
    assert store.read("trials").num_rows == 1
