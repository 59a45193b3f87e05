"""Warnings of a training: in the worker's log, once each."""

import json

from orch.running.worker import UnitRun
from orch.store import Store
from orch.training import train
from tests.small import small_trial
from tests.unit_requests import unit_request


class Impossible:
    def warm_up(self, step):
        step()

    def record(self, step):
        raise RuntimeError("operation not permitted when stream is capturing")


def test_a_step_that_cannot_be_recorded_is_logged_once_and_the_trial_finishes(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "find_recorder", lambda device: Impossible())
    store, trial = Store.open(tmp_path / "runs"), small_trial("rnn", steps=30)
    request = unit_request(store, [trial])
    run = UnitRun(request)
    assert run.run_for(60)["done"]
    run.stop()
    (path,) = store.list_files("logs")
    events = [json.loads(line) for line in (store.get_bytes(path) or b"").splitlines()]
    warnings = [event["text"] for event in events if event["event"] == "warning"]
    assert len(warnings) == 1
    assert "cannot be recorded (operation not permitted when stream is capturing)" in warnings[0]
    assert store.read("trials").num_rows == 1
