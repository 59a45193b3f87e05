"""Checkpoints that a thread writes while training goes on, to a real store that may be slow or broken."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from orch.core.errors import StoreUnreachable
from orch.running import worker
from orch.running.checkpoint_writer import CheckpointWriter
from orch.running.failures import TrialError
from orch.running.options import DEFAULT_TRAINING
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest
from orch.store import Outcome, Store
from orch.training.checkpoints import parse_snapshot
from orch.training.train import Training, train
from tests.engine.conftest import ROOT, wait_for
from tests.small import small_trial
from tests.unit_requests import unit_request

TRIALS = [small_trial("rnn", steps=40, init_seed=seed, data_seed=seed) for seed in range(3)]


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def request_for(store, trials=TRIALS, checkpoint_seconds=0.0, training=DEFAULT_TRAINING) -> UnitRequest:
    return unit_request(store, trials, checkpoint_seconds=checkpoint_seconds, training=training)


def test_a_unit_stops_between_two_validations_and_goes_on_where_it_was(store):
    run = UnitRun(request_for(store, checkpoint_seconds=60))
    run.advance(until=0.0)
    assert run.step == 1
    run.stop()
    resumed = UnitRun(request_for(store))
    assert resumed.step == 1
    resumed.stop()


class SlowStore:
    """Holds up the writing of checkpoints until it is opened."""

    def __init__(self, monkeypatch):
        self.begun: list[str] = []
        self._open = threading.Event()
        put = Store.put_checkpoint

        def slow_put(store, trial_id, data):
            self.begun.append(trial_id)
            assert self._open.wait(60)
            put(store, trial_id, data)

        monkeypatch.setattr(Store, "put_checkpoint", slow_put)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def slow(monkeypatch):
    found = SlowStore(monkeypatch)
    yield found
    found.open()


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def saved(store, trial):
    data = store.get_checkpoint(trial.id)
    return None if data is None else parse_snapshot(data, "a checkpoint")


def assert_same(found, expected):
    assert found.step == expected.step
    assert found.curve[-1].validation_loss == expected.curve[-1].validation_loss
    for kind in ("parameters", "first", "second"):
        tensors = getattr(expected, kind)
        assert getattr(found, kind).keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert torch.equal(getattr(found, kind)[name], tensor), f"{kind} of {name}"


def outcomes(store):
    return [row["outcome"] for row in store.read("attempts").to_pylist() if row["event"] == "end"]


def events(run, store, name):
    run._log.flush(now=True)
    lines = b"".join(store.get_bytes(path) or b"" for path in store.list_files("logs")).splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def at_step(trials, step):
    training = Training(trials)
    while training.step < step:
        training.advance(stop_at=step)
    return training


def test_training_goes_on_while_a_slow_store_writes_and_what_is_written_is_of_one_step(store, slow):
    run = UnitRun(request_for(store))
    run.advance()
    wait_for(lambda: slow.begun)
    run.advance()
    run.advance()
    assert run.step == 30, "training goes on"
    assert slow.begun == [TRIALS[0].id], "no other checkpoint is begun while one is being written"
    assert saved(store, TRIALS[0]) is None
    slow.open()
    run._writer.wait()
    expected = at_step(TRIALS, 10)
    for position, trial in enumerate(TRIALS):
        assert_same(saved(store, trial), expected.snapshot(position))
    assert run.run_for(60)["done"]
    assert {row["trial_id"]: row["validation_loss"] for row in store.read("trials").to_pylist()} == {
        trial.id: train(trial).curve[-1].validation_loss for trial in TRIALS
    }


@pytest.mark.parametrize(("share", "steps"), [(1e9, 20), (1e-9, 10)])
def test_checkpoints_that_cost_training_too_much_are_written_less_often(store, monkeypatch, share, steps):
    monkeypatch.setattr(worker, "CHECKPOINT_COST", share)
    run = UnitRun(request_for(store))
    for _ in range(2):
        run.advance()
        run._writer.wait()
    assert [saved(store, trial).step for trial in TRIALS] == [steps] * 3


def test_the_checkpoint_of_a_finished_trial_never_comes_back(store, slow):
    trials = [small_trial("rnn", steps=20, init_seed=seed, data_seed=seed) for seed in range(3)]
    run = UnitRun(request_for(store, trials))
    run.advance()
    wait_for(lambda: slow.begun)
    finishing = in_a_thread(run.advance)
    finishing.join(0.3)
    assert finishing.is_alive(), "the checkpoint in writing has to end before it is deleted"
    assert outcomes(store) == []
    slow.open()
    finishing.join()
    run._writer.wait()
    assert slow.begun == [trials[0].id], "the others finished before their turn"
    assert store.list_files("checkpoints") == []
    assert outcomes(store) == ["finished"] * 3


def test_a_trial_that_leaves_the_pack_is_left_out_and_the_others_are_written(store, slow):
    training, writer = at_step(TRIALS, 5), CheckpointWriter(store)
    writer.start([training.view(position) for position in range(3)])
    wait_for(lambda: slow.begun)
    writer.drop([TRIALS[1].id])
    slow.open()
    writer.wait()
    assert [saved(store, trial) is not None for trial in TRIALS] == [True, False, True]


def test_stop_waits_for_what_is_being_written_and_then_writes_the_present_step(store, slow):
    run = UnitRun(request_for(store))
    run.advance()
    wait_for(lambda: slow.begun)
    run.advance()
    stopping = in_a_thread(run.stop)
    stopping.join(0.3)
    assert stopping.is_alive()
    assert outcomes(store) == []
    slow.open()
    stopping.join()
    assert not run._writer.busy
    expected = at_step(TRIALS, 20)
    for position, trial in enumerate(TRIALS):
        assert_same(saved(store, trial), expected.snapshot(position))
    assert outcomes(store) == ["interrupted"] * 3
    assert slow.begun == [TRIALS[0].id, *(trial.id for trial in TRIALS)], "what would be replaced at once is left out"
    assert [event["step"] for event in events(run, store, "checkpoint written")] == [20]


def test_an_attempt_ends_after_its_last_checkpoint_is_written(store, slow):
    run = UnitRun(request_for(store, checkpoint_seconds=60))
    run.advance()
    stopping = in_a_thread(run.stop)
    wait_for(lambda: slow.begun)
    stopping.join(0.3)
    assert stopping.is_alive()
    assert outcomes(store) == []
    slow.open()
    stopping.join()
    assert [saved(store, trial).step for trial in TRIALS] == [10] * 3
    assert outcomes(store) == ["interrupted"] * 3


def test_a_training_that_fails_leaves_no_thread_that_writes_later(store, slow, monkeypatch):
    run = UnitRun(request_for(store))
    run.advance()
    wait_for(lambda: slow.begun)
    monkeypatch.setattr(run._training, "advance", lambda on_step: 1 / 0)
    raised = []

    def fail():
        with pytest.raises(TrialError) as caught:
            run.advance()
        raised.append(caught.value.failure)

    failing = in_a_thread(fail)
    failing.join(0.3)
    assert failing.is_alive()
    assert outcomes(store) == [], "another attempt could begin, and this one's write come later"
    slow.open()
    failing.join()
    assert not run._writer.busy
    assert outcomes(store) == ["failed"] * 3
    assert raised[0].error_type == "ZeroDivisionError"


def block(store):
    """Put a file where the folder of checkpoints should be, so that they cannot be written. Return its path."""
    store.put_bytes("checkpoints", b"")
    return Path(store.uri) / "checkpoints"


def test_an_error_of_the_thread_ends_the_attempt_once_and_as_the_kind_that_it_is(store):
    run = UnitRun(request_for(store))
    block(store)
    run.advance()
    run._writer.wait()
    with pytest.raises(TrialError) as caught:
        run.advance()
    with pytest.raises(StoreUnreachable) as of_the_store:
        store.put_checkpoint(TRIALS[0].id, b"")
    failure = caught.value.failure
    assert (failure.error_type, failure.message) == ("StoreUnreachable", str(of_the_store.value))
    assert failure.signature.startswith("StoreUnreachable in files.py:reaching: cannot write to the store")
    assert failure.store_lost
    assert failure.written
    assert outcomes(store) == ["failed"] * 3
    run.stop()
    assert outcomes(store) == ["failed"] * 3


def test_at_the_end_a_failed_checkpoint_is_written_again_and_only_logged(store):
    run = UnitRun(request_for(store))
    blocked = block(store)
    run.advance()
    run._writer.wait()
    blocked.unlink()
    run.stop()
    assert [saved(store, trial).step for trial in TRIALS] == [10] * 3
    assert outcomes(store) == ["interrupted"] * 3
    assert len(events(run, store, "checkpoint failed")) == 1


def test_a_checkpoint_that_cannot_be_written_at_the_end_is_an_error(store):
    run = UnitRun(request_for(store, checkpoint_seconds=60))
    block(store)
    run.advance()
    with pytest.raises(StoreUnreachable):
        run.stop()


def test_a_finished_unit_is_no_failure_because_of_a_checkpoint_that_nobody_needs(store):
    run = UnitRun(request_for(store, [small_trial("rnn", steps=20)]))
    blocked = block(store)
    run.advance()
    run._writer.wait()
    blocked.unlink()
    run.advance()
    assert len(run.take_finished()) == 1
    run.stop()
    assert outcomes(store) == ["finished"]
    assert len(events(run, store, "checkpoint failed")) == 1


def test_the_outcome_of_a_stopped_attempt_is_the_one_asked_for(store):
    run = UnitRun(request_for(store))
    run.advance()
    run.stop(Outcome.PRUNED)
    assert outcomes(store) == ["pruned"] * 3


KILLED = """
import json, sys
from orch.running import worker

worker.CHECKPOINT_COST = 1e9
print(worker.UnitRun(json.loads(sys.argv[1])).run_for(60))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("point", ["checkpoint-written:1", "checkpoint-renamed:2", "checkpoint-written:5"])
def test_a_worker_killed_within_the_thread_resumes_to_the_same_bits(store, point):
    """After the fifth write began, two trials are at another step than the third, and train by themselves."""
    environment = {
        "ORCH_CRASH_AT": point,
        "ORCH_FAULTS": '[["slow 0.5", {}]]',
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "OMP_NUM_THREADS": "1",
    }
    request = request_for(store, training="tests.engine.faults:open_training")
    command = [sys.executable, "-c", KILLED, json.dumps(request)]
    process = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert not store.done()
    before = [snapshot and snapshot.step for snapshot in (saved(store, trial) for trial in TRIALS)]
    expected = {
        "checkpoint-written:1": [None, None, None],
        "checkpoint-renamed:2": [10, 10, None],
        "checkpoint-written:5": [20, 10, 10],
    }
    assert before == expected[point]
    assert UnitRun(request_for(store)).run_for(60)["done"]
    rows = {row["trial_id"]: row for row in store.read("trials").to_pylist()}
    for trial in TRIALS:
        result = train(trial)
        assert rows[trial.id]["validation_loss"] == result.curve[-1].validation_loss
        assert rows[trial.id]["ood_accuracy"] == result.ood_accuracy
    assert store.list_files("checkpoints") == []
