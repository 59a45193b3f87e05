"""The static step: the numbers of the ordinary one, from the same operations on the same memory again and again."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from orch.core.errors import InvalidSettings
from orch.models import vocabularies
from orch.models.recurrence import batch_positions, blocks, token_lookup
from orch.sweeps.trial import Trial
from orch.training import capture, train
from orch.training.capture import NUM_WARM_UP_STEPS, Recorder, StepFunction
from orch.training.snapshot import Snapshot
from orch.training.train import Training
from tests.small import TYPICAL_MODELS, small_trial
from tests.training.no_recorder import TheStepItself
from tests.training.operations import Operations, trace

every_model = pytest.mark.parametrize("model", TYPICAL_MODELS)
# Validations fall within blocks of 64 steps and blocks within validations.
LONG = {"steps": 200, "eval_every": 30, "learning_rate": 1e-3}


class Impossible(TheStepItself):
    def record(self, step: StepFunction) -> StepFunction:
        raise RuntimeError("operation not permitted\n when stream is capturing")


@pytest.fixture
def record_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[Recorder | None], None]:
    return lambda recorder: monkeypatch.setattr(train, "find_recorder", lambda device: recorder)


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the models' code for GPUs, which asks the host for nothing."""
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    for module in (blocks, batch_positions, token_lookup, vocabularies):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)


def run(trials: list[Trial], stop_at: int | None = None) -> tuple[list[Snapshot], list[Any]]:
    """Train to the end, or to `stop_at` and then on from snapshots; return the states before the end and the curves."""
    training = Training(trials)
    last = trials[0].steps - 1
    while training.step < (stop_at or last):
        training.advance(stop_at=stop_at or last)
    if stop_at:
        training = Training.resume([training.snapshot(position) for position in range(len(trials))])
        while training.step < last:
            training.advance(stop_at=last)
    snapshots = [training.snapshot(position) for position in range(len(training.members))]
    while not training.finished:
        training.advance()
    curves = [[dataclasses.replace(point, seconds=0) for point in result.curve] for result in training.results]
    return snapshots, curves


def assert_equal(found: tuple[list[Snapshot], list[Any]], expected: tuple[list[Snapshot], list[Any]]) -> None:
    assert found[1] == expected[1]
    assert len(found[0]) == len(expected[0])
    for one, other in zip(found[0], expected[0], strict=True):
        for state in ("parameters", "first", "second"):
            for name, tensor in getattr(other, state).items():
                assert torch.equal(getattr(one, state)[name], tensor), (state, name)


@pytest.mark.thorough
@every_model
def test_the_static_step_run_200_times_gives_the_numbers_of_the_ordinary_one(model, record_with):
    trial = small_trial(model, **LONG)
    expected = run([trial])
    record_with(TheStepItself())
    assert_equal(run([trial]), expected)


@pytest.mark.thorough
@every_model
def test_operations_recorded_once_and_replayed_200_times_give_the_numbers_of_ordinary_steps(
    model, record_with, as_on_a_gpu
):
    trials = [small_trial(model, **LONG, init_seed=seed, data_seed=seed) for seed in range(2)]
    expected = run(trials)
    record_with(recorder := Operations())
    assert_equal(run(trials), expected)
    assert recorder.num_recorded == 1


@pytest.mark.thorough
@every_model
def test_a_pack_across_cells_is_recorded_once_and_replayed(model, record_with, as_on_a_gpu):
    cells = (("modular_addition", 2), ("dihedral", 3), ("modular_arithmetic", 2))
    trials = [small_trial(model, task, modulus=modulus, steps=20, eval_every=30) for task, modulus in cells]
    expected = run(trials)
    record_with(recorder := Operations())
    assert_equal(run(trials), expected)
    assert recorder.num_recorded == 1


@every_model
def test_every_step_is_the_same_operations_whatever_its_batch(model, record_with, as_on_a_gpu):
    record_with(TheStepItself())
    training = Training([small_trial(model, init_seed=seed, data_seed=seed) for seed in range(2)])
    training.advance(stop_at=2)
    assert trace(training._train_step) == trace(training._train_step)


def test_steps_that_leave_out_padding_are_not_the_same_operations(record_with, monkeypatch):
    """The traces can differ: on a CPU an LSTM reads only as many samples as have not ended."""
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    record_with(TheStepItself())
    training = Training([small_trial("lstm", width=48)])
    training.advance(stop_at=2)
    assert trace(training._train_step) != trace(training._train_step)


def test_a_resumed_training_goes_on_within_its_block(record_with, as_on_a_gpu):
    trials = [small_trial("rotation", **LONG)]
    expected = run(trials, stop_at=75)
    record_with(recorder := Operations())
    assert_equal(run(trials, stop_at=75), expected)
    assert recorder.num_recorded == 2


def test_a_smaller_last_batch_of_an_epoch_is_recorded_separately(record_with, as_on_a_gpu):
    trials = [small_trial("rnn", **LONG, train_examples=40, batch_size=16, min_inputs=10)]
    expected = run(trials)
    record_with(recorder := Operations())
    assert_equal(run(trials), expected)
    assert recorder.num_recorded == 2


def test_a_pack_that_shrinks_is_recorded_again(record_with, as_on_a_gpu):
    def finish() -> dict[str, Any]:
        training = Training([quick, slow])
        while not training.finished:
            training.advance()
        return {result.trial.id: result for result in training.results}

    quick = small_trial("rnn", steps=40, learning_rate=1e-2)
    slow = dataclasses.replace(quick, learning_rate=1e-4, init_seed=1, data_seed=1)
    reached = train.train(quick).curve[1].validation_loss
    quick, slow = (dataclasses.replace(trial, stop_loss=reached + 1e-6) for trial in (quick, slow))
    expected = finish()
    record_with(recorder := Operations())
    found = finish()
    assert [result.steps for result in found.values()] == [20, 40]
    assert recorder.num_recorded == 2
    for trial_id, result in expected.items():
        for name, tensor in result.parameters.items():
            assert torch.equal(found[trial_id].parameters[name], tensor), name


def test_a_step_that_counts_on_the_host_goes_wrong_when_it_is_replayed(record_with, as_on_a_gpu, monkeypatch):
    """The replay can fail: it repeats what was recorded, not what Python would do."""
    trials = [small_trial("rnn", **LONG)]
    expected = run(trials)
    update, calls = train.update, []

    def counting(network: Any, parameters: Any, optimiser: Any, *batch: Any) -> Any:
        calls.append(1)
        return update(network, parameters, optimiser, *batch) + len(calls)

    monkeypatch.setattr(train, "update", counting)
    record_with(Operations())
    found = run(trials)
    assert len(calls) == NUM_WARM_UP_STEPS + 1
    assert [point.train_loss for point in found[1][0]] != [point.train_loss for point in expected[1][0]]


def test_a_step_that_cannot_be_recorded_goes_on_as_it_is_and_says_so(record_with):
    trials = [small_trial("rnn", **LONG)]
    expected = run(trials)
    record_with(Impossible())
    assert_equal(run(trials), expected)
    training = Training(trials)
    training.advance(stop_at=NUM_WARM_UP_STEPS)
    assert training.warnings == []
    training.advance(stop_at=NUM_WARM_UP_STEPS + 2)
    assert training.warnings == [
        "a training step cannot be recorded (operation not permitted when stream is capturing):"
        " it runs one operation at a time"
    ]


def test_steps_are_not_recorded_on_a_cpu_nor_where_the_user_turns_it_off(monkeypatch):
    assert capture.find_recorder(torch.device("cpu")) is None
    monkeypatch.setenv("ORCH_CAPTURE", "off")
    assert capture.find_recorder(torch.device("cuda")) is None
    monkeypatch.setenv("ORCH_CAPTURE", "of")
    with pytest.raises(InvalidSettings, match="ORCH_CAPTURE=of is unknown: use on or off"):
        capture.find_recorder(torch.device("cpu"))


@pytest.mark.parametrize("supervision", ["every", "sparse:20"])
def test_steps_with_labels_within_sequences_are_recorded_and_replayed(supervision, record_with, as_on_a_gpu):
    trials = [small_trial("rnn", supervision=supervision, init_seed=seed, data_seed=seed) for seed in range(2)]
    expected = run(trials)
    record_with(recorder := Operations())
    assert_equal(run(trials), expected)
    assert recorder.num_recorded == 1
