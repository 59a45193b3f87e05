"""Training: the right gradient steps, stops, results, and a resume that changes nothing."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from orch.core.errors import DamagedFile, InvalidSettings
from orch.models.network import build, per_trial_loss
from orch.models.recurrence import batch_positions, blocks, token_lookup
from orch.sweeps.result import StopReason
from orch.tasks.sampling import Sampler, derive_seed
from orch.training import checkpoints
from orch.training.checkpoints import (
    load_model,
    load_snapshot,
    parse_snapshot,
    save_model,
    save_snapshot,
    snapshot_bytes,
)
from orch.training.data import STEPS_PER_BLOCK, FixedSet, training_data
from orch.training.evaluation import EvaluationSets
from orch.training.train import Training, train
from tests.small import TYPICAL_MODELS, small_trial

every_model = pytest.mark.parametrize("model", TYPICAL_MODELS)
ROOT = Path(__file__).parents[2]


def finish(training: Training) -> Training:
    while not training.finished:
        training.advance()
    return training


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


@every_model
def test_training_takes_torchs_adam_steps(model):
    trial = small_trial(model, steps=10, learning_rate=1e-3)
    ours = train(trial).parameters

    generator = torch.Generator().manual_seed(derive_seed("initialise", trial.init_seed))
    network = build(trial.model, trial.vocabulary, [generator])
    optimiser = torch.optim.Adam(
        network.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, fused=False, foreach=False
    )
    data = training_data([trial], Sampler(trial.task))
    for step in range(10):
        tokens, end, target = data.batch(step)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(tokens, end)[0], target[0]).backward()
        optimiser.step()
    num_compared = 0
    for name, theirs in network.member(0).items():
        # Ten steps move a weight by up to 1e-2; where gradients all but vanish, Adam makes much of rounding. Those of
        # sLSTM's input gate's bias are zero but for rounding, because it cancels in the normalised state.
        counts = optimiser.state[network[name]]["exp_avg_sq"][0].sqrt() > 1e-8
        num_compared += int(counts.sum())
        torch.testing.assert_close(
            ours[name][counts], theirs[counts], rtol=1e-3, atol=2e-4, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert num_compared > 0.2 * sum(each.numel() for each in network.parameters()), "many positions are never read"


RESUME_ELSEWHERE = """
import sys, torch
torch.set_num_threads(1)
from orch.training.checkpoints import load_snapshot, save_model
from orch.training.train import Training
training = Training.resume([load_snapshot(sys.argv[1])])
while not training.finished:
    training.advance()
save_model(sys.argv[2], training.results[0])
"""


@every_model
def test_a_trial_stopped_at_any_step_and_resumed_in_a_new_process_ends_bit_for_bit_the_same(model, tmp_path):
    trial = small_trial(model, steps=30, learning_rate=1e-3)
    uninterrupted = train(trial)
    training = Training([trial])
    training.advance()
    training.advance(stop_at=13)
    assert training.step == 13
    save_snapshot(tmp_path / "snapshot.safetensors", training.snapshot())
    arguments = [tmp_path / "snapshot.safetensors", tmp_path / "model.safetensors"]
    subprocess.run([sys.executable, "-c", RESUME_ELSEWHERE, *arguments], check=True, cwd=ROOT)
    network, loaded_trial = load_model(tmp_path / "model.safetensors")
    assert loaded_trial == trial
    assert_same_weights(network.member(0), uninterrupted.parameters)


def test_a_snapshot_remembers_all_of_the_curve(tmp_path):
    trial = small_trial("rnn", steps=30)
    training = Training([trial])
    training.advance()
    training.advance()
    save_snapshot(tmp_path / "snapshot", training.snapshot())
    resumed = finish(Training.resume([load_snapshot(tmp_path / "snapshot")]))
    whole = train(trial)
    for found, expected in zip(resumed.results[0].curve, whole.curve, strict=True):
        assert dataclasses.replace(found, seconds=0) == dataclasses.replace(expected, seconds=0)
    assert resumed.results[0].test_accuracy == whole.test_accuracy


def test_a_finished_member_leaves_and_the_others_go_on_unchanged():
    quick = small_trial("rnn", steps=40, learning_rate=1e-2)
    slow = dataclasses.replace(quick, learning_rate=1e-4, init_seed=1, data_seed=1)
    reached = train(quick).curve[1].validation_loss
    quick, slow = (dataclasses.replace(trial, stop_loss=reached + 1e-6) for trial in (quick, slow))
    training = finish(Training([quick, slow]))
    first, second = training.results
    assert (first.trial, first.stop_reason, first.steps) == (quick, StopReason.EARLY_STOP, 20)
    assert (second.trial, second.stop_reason, second.steps) == (slow, StopReason.BUDGET, 40)
    assert_same_weights(second.parameters, train(slow).parameters)


def test_trials_that_differ_in_more_than_rate_and_seeds_do_not_share_a_pack():
    with pytest.raises(InvalidSettings, match="may differ only in learning rate, seeds"):
        Training([small_trial("rnn"), small_trial("rnn", batch_size=32)])


def test_training_stops_early_when_the_validation_loss_is_low():
    result = train(small_trial("rnn", steps=500, stop_loss=0.5, modulus=2, learning_rate=1e-2, max_inputs=3))
    assert result.stop_reason == StopReason.EARLY_STOP
    assert result.curve[-1].validation_loss < 0.5
    assert result.steps == result.curve[-1].step < 500
    assert all(point.validation_loss >= 0.5 for point in result.curve[:-1])


def test_a_non_finite_loss_is_a_result_and_spares_the_rest_of_the_pack():
    good = small_trial("rnn", steps=40, learning_rate=1e-3)
    bad = dataclasses.replace(good, learning_rate=1e38, init_seed=1)
    results = {result.trial: result for result in finish(Training([bad, good])).results}
    assert results[bad].stop_reason == StopReason.DIVERGED
    assert results[good].stop_reason == StopReason.BUDGET
    assert_same_weights(results[good].parameters, train(good).parameters)
    json.dumps(results[bad].summary())


def test_frozen_recurrences_train_only_the_head():
    trial = small_trial("block_diagonal", frozen=True, learning_rate=1e-2)
    before = Training([trial]).snapshot().parameters
    after = train(trial).parameters
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"head.weight", "head.bias"}


@pytest.mark.parametrize("additive", ["none", "constant", "input", "input+constant"])
def test_additive_terms_are_trained_when_asked_for(additive):
    trial = small_trial("bilinear", additive=additive, learning_rate=1e-2)
    before, after = Training([trial]).snapshot().parameters, train(trial).parameters
    names = {name for name in after if name.startswith("additive.")}
    assert names == {f"additive.{part}" for part in additive.split("+") if additive != "none"}
    assert all(not torch.equal(before[name], after[name]) for name in names)


@pytest.mark.parametrize("train_kind", ["none", "unit", "rms-final", "block"])
def test_normalisation_is_set_apart_for_training_and_evaluation(train_kind):
    trial = small_trial("block_diagonal", train_normalisation=train_kind, eval_normalisation="rms", init_scale=0.3)
    network = Training([trial]).network
    batch = EvaluationSets(trial, torch.device("cpu")).validation
    tokens, end = batch.tokens_NT[None], batch.end_N[None]
    assert (
        not torch.allclose(network.train()(tokens, end), network.eval()(tokens, end), rtol=1e-3)
        or train_kind == "rms-final"
    )


def test_fresh_samples_are_the_same_whatever_was_asked_before():
    trial = small_trial("rnn")
    straight, jumping = (training_data([trial], Sampler(trial.task)) for _ in range(2))
    wanted = STEPS_PER_BLOCK + 5
    for step in range(wanted + 1):
        expected = straight.batch(step)
    assert all(torch.equal(a, b) for a, b in zip(jumping.batch(wanted), expected, strict=True))
    assert not torch.equal(jumping.batch(wanted + 1)[0], expected[0])


@pytest.mark.parametrize("shortest", [2, 10])
def test_an_epoch_visits_every_example_of_a_fixed_set_once_in_a_new_order(shortest):
    trial = small_trial("rnn", train_examples=10, batch_size=4, min_inputs=shortest)
    data = training_data([trial], Sampler(trial.task))
    assert isinstance(data, FixedSet)
    assert len(set(data.samples[0].end_N.tolist())) == (1 if shortest == 10 else 6)
    assert trial.batches_per_epoch == 3
    epochs = []
    for epoch in range(2):
        batches = [data.batch(3 * epoch + part)[0][0] for part in range(3)]
        assert [len(batch) for batch in batches] == [4, 4, 2]
        epochs.append(torch.cat(batches).tolist())
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(data.samples[0].tokens_NT.tolist())
    assert epochs[0] != epochs[1]


def test_evaluation_sets_depend_on_the_evaluation_seed_alone():
    one = EvaluationSets(small_trial("rnn"), torch.device("cpu"))
    same = EvaluationSets(small_trial("bilinear", init_seed=3, data_seed=4), torch.device("cpu"))
    other = EvaluationSets(small_trial("rnn", eval_seed=1), torch.device("cpu"))
    assert torch.equal(one.validation.tokens_NT, same.validation.tokens_NT)
    assert torch.equal(one.of_length(40).tokens_NT, same.of_length(40).tokens_NT)
    assert not torch.equal(one.of_length(40).tokens_NT, other.of_length(40).tokens_NT)
    assert len(one.of_length(40).target_N) == 32
    assert (one.of_length(40).end_N == 41).all()


def test_accuracies_are_reported_raw_and_normalised():
    result = train(small_trial("rnn"))
    summary = result.summary()
    chance = 1 / 5
    for name in ("validation_accuracy", "ood_accuracy"):
        assert summary[name] == pytest.approx((summary[f"{name}_raw"] - chance) / (1 - chance))
    assert set(summary["length_curve"]) == {"10", "40"}


@every_model
def test_no_training_step_reads_a_value_back_from_the_device(model, monkeypatch):
    """Run the GPU code path on the CPU: nothing that would make a GPU wait for the host, or the host for a GPU."""
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    for module in (blocks, batch_positions, token_lookup):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    settings = {"block_size": 16, "width": 32} if model == "block_diagonal" else {}
    training = Training([small_trial(model, **settings)])
    training.advance(stop_at=1)  # what is drawn once per block of steps, is drawn

    waits = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::equal"}

    class NoWaiting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert func.name() not in waits, f"{func.name()} waits for the device"
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: pytest.fail("tolist waits for the device"))
    monkeypatch.setattr(torch.Tensor, "numpy", lambda self: pytest.fail("numpy waits for the device"))
    with NoWaiting():
        training.advance(stop_at=4)


def test_a_damaged_or_missing_file_is_named(tmp_path):
    with pytest.raises(DamagedFile, match="there is no file"):
        load_snapshot(tmp_path / "absent")
    (tmp_path / "half").write_bytes(b"\x10\x00\x00")
    with pytest.raises(DamagedFile, match="is damaged"):
        load_snapshot(tmp_path / "half")
    save_model(tmp_path / "model", train(small_trial("rnn")))
    with pytest.raises(DamagedFile, match="contains no step saved by orch"):
        load_snapshot(tmp_path / "model")


def test_saved_files_are_replaced_whole(tmp_path):
    training = Training([small_trial("rnn")])
    for _ in range(2):
        training.advance(stop_at=training.step + 1)
        save_snapshot(tmp_path / "snapshot", training.snapshot())
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot"]
    assert load_snapshot(tmp_path / "snapshot").step == 2


def test_the_loss_is_cross_entropy_at_the_end_of_input():
    logits, target = torch.randn(2, 3, 7), torch.tensor([[0, 1, 2], [3, 4, 5]])
    expected = -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
    torch.testing.assert_close(per_trial_loss(logits, target), expected)
    assert math.isfinite(expected.sum())


def test_products_keep_all_their_digits_on_a_gpu():
    torch.backends.cudnn.allow_tf32 = True
    Training([small_trial("rnn")])
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("kernel", ["plain", "compiled"])
def test_a_resumed_trial_goes_on_with_the_kernel_it_began_with(kernel, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", kernel)
    whole, training = Training([small_trial("rnn")]), Training([small_trial("rnn")])
    training.advance(stop_at=5)
    saved = snapshot_bytes(training.snapshot())
    monkeypatch.setenv("ORCH_KERNEL", "compiled" if kernel == "plain" else "plain")
    resumed = Training.resume([parse_snapshot(saved, "a checkpoint")])
    assert resumed.kernel == kernel
    for each in (whole, resumed):
        while not each.finished:
            each.advance()
    for name, tensor in whole.results[0].parameters.items():
        assert torch.equal(resumed.results[0].parameters[name], tensor), name


def test_a_trial_that_began_with_an_earlier_compiled_kernel_goes_on_with_it(monkeypatch):
    new = Training([small_trial("mamba")])
    assert new.kernel == "compiled-2"
    earlier = Training.resume([dataclasses.replace(new.snapshot(), kernel="compiled")])
    monkeypatch.delattr("orch.models.compiled.mamba_step.loss_and_gradients")
    earlier.advance(stop_at=2)
    resumed = Training.resume([parse_snapshot(snapshot_bytes(earlier.snapshot()), "a checkpoint")])
    assert resumed.kernel == "compiled"
    resumed.advance()


def test_a_checkpoint_from_before_there_were_kernels_is_a_plain_one(monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    training = Training([small_trial("rnn")])
    training.advance(stop_at=5)
    monkeypatch.delenv("ORCH_KERNEL")
    tensors, header = checkpoints._decode(snapshot_bytes(training.snapshot()), "a checkpoint", ("trial", "step"))
    del header["kernel"]
    old = parse_snapshot(b"".join(checkpoints._encode(tensors, header)), "an old checkpoint")
    assert Training.resume([old]).kernel == "plain"


def test_a_compiled_trial_is_not_resumed_where_numba_is_missing(monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "compiled")
    training = Training([small_trial("rnn")])
    training.advance(stop_at=5)
    monkeypatch.setattr("orch.training.train.compiler_found", lambda: False)
    with pytest.raises(InvalidSettings, match="pip install numba"):
        Training.resume([training.snapshot()])


@every_model
def test_a_step_keeps_nothing_of_the_one_before(model):
    training = Training([small_trial(model, steps=10)])
    training.advance(stop_at=2)
    assert not training._losses_KS.requires_grad, "else the graph of every step is kept"
