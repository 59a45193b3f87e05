"""The recipe of a trial: the arithmetic of torch's optimisers, alone and in packs, exact after a resume."""

import dataclasses
from typing import Any

import pytest
import torch

from orch.core.errors import InvalidSettings
from orch.models import vocabularies
from orch.models.recurrence import batch_positions, blocks, token_lookup
from orch.models.token_table import OuterProducts
from orch.sweeps.result import StopReason
from orch.sweeps.trial import Trial
from orch.training import train
from orch.training.checkpoints import parse_snapshot, snapshot_bytes
from orch.training.data import longest_inputs
from orch.training.optimisers import make_optimiser
from orch.training.schedules import LearningRates, Schedule
from orch.training.snapshot import Snapshot
from orch.training.train import Training
from tests.small import MODELS, small_trial
from tests.training.no_recorder import TheStepItself
from tests.training.operations import Operations

RECIPES: dict[str, dict[str, Any]] = {
    "adam with weight decay": {"weight_decay": 0.1, "warmup_steps": 4},
    "adam with clipping": {"clip_norm": 0.1, "schedule": "cosine"},
    "adamw": {"optimiser": "adamw", "weight_decay": 0.1, "clip_norm": 0.1, "schedule": "cosine", "warmup_steps": 4},
    "sgd": {"optimiser": "sgd", "schedule": "cosine"},
    "sgd with momentum": {"optimiser": "sgd", "momentum": 0.9, "weight_decay": 0.1, "clip_norm": 0.1},
    "curriculum": {"curriculum": 0.8, "warmup_steps": 12},
    "float64": {"precision": "float64", "clip_norm": 0.1},
}
every_recipe = pytest.mark.parametrize("recipe", RECIPES)


def two(recipe: str, model: str = "rnn", **settings: Any) -> list[Trial]:
    """Return two trials that share a pack and differ in everything that may."""
    first = small_trial(model, **RECIPES[recipe], **settings, learning_rate=1e-2)
    amounts = {name: getattr(first, name) * 0.9 for name in ("weight_decay", "clip_norm", "momentum")}
    warmup_steps = first.warmup_steps and first.warmup_steps + 1
    task = dataclasses.replace(first.task, modulus=2)
    return [first, dataclasses.replace(first, task=task, learning_rate=1e-3, warmup_steps=warmup_steps, **amounts)]


def states(training: Training, position: int = 0) -> dict[str, torch.Tensor]:
    snapshot = training.snapshot(position)
    kinds = ("parameters", "first", "second")
    return {f"{kind} {name}": tensor for kind in kinds for name, tensor in getattr(snapshot, kind).items()}


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def reference(trial: Trial, parameters: list[torch.Tensor]) -> Any:
    """Return torch's optimiser of a trial."""
    decay = {"lr": trial.learning_rate, "weight_decay": trial.weight_decay, "fused": True}
    if trial.optimiser == "sgd":
        return torch.optim.SGD(parameters, momentum=trial.momentum, **decay)
    return (torch.optim.AdamW if trial.optimiser == "adamw" else torch.optim.Adam)(parameters, **decay)


@every_recipe
def test_updates_are_those_of_torch_optim_after_clip_grad_norm(recipe):
    trials = two(recipe, steps=20)
    generator = torch.Generator().manual_seed(0)
    numbers = torch.float64 if trials[0].precision == "float64" else torch.float32
    stacks = [torch.randn(2, *shape, generator=generator, dtype=numbers) for shape in ((7, 3), (5,), (4, 4))]
    own = [[stack[position].clone().requires_grad_() for stack in stacks] for position in range(2)]
    ours = make_optimiser(trials, stacks, None, "plain", recorded=False)
    theirs = [reference(trial, parameters) for trial, parameters in zip(trials, own, strict=True)]
    norms = []
    for step in range(20):
        gradients = [torch.randn(stack.shape, generator=generator, dtype=numbers) * 0.05 for stack in stacks]
        ours.update(gradients)
        for position, (trial, optimiser) in enumerate(zip(trials, theirs, strict=True)):
            for parameter, gradient in zip(own[position], gradients, strict=True):
                parameter.grad = gradient[position].clone()
            if trial.clip_norm:
                norms.append(torch.nn.utils.clip_grad_norm_(own[position], trial.clip_norm))
            optimiser.param_groups[0]["lr"] = trial.learning_rate * Schedule.of(trial).factor(step + 1)
            optimiser.step()
    assert all(norm > 0.1 for norm in norms), "some gradient must be clipped"
    for stack, *each in zip(stacks, *own, strict=True):
        for position, parameter in enumerate(each):
            torch.testing.assert_close(stack[position], parameter.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("recipe", ["adam with weight decay", "adam with clipping", "adamw", "sgd with momentum"])
def test_a_gradient_that_is_not_written_out_is_treated_like_one_that_is(recipe):
    trials = two(recipe, steps=5)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(2, 12, 8, generator=generator)
    ours, plain = weight.clone(), weight.clone()
    optimisers = [make_optimiser(trials, [stack], None, "compiled", recorded=False) for stack in (ours, plain)]
    for _ in range(5):
        g_KRO, x_KRD = torch.randn(2, 4, 12, generator=generator), torch.randn(2, 4, 8, generator=generator)
        products = OuterProducts(g_KRO, x_KRD)
        optimisers[0].update([products])
        optimisers[1].update([products.written_out()])
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(ours, weight, atol=1e-3)


@every_recipe
@pytest.mark.parametrize(
    ("model", "kernel"),
    [
        ("rnn", "plain"),
        ("rnn", "compiled"),
        pytest.param("bilinear", "plain", marks=pytest.mark.slow),
        pytest.param("bilinear", "compiled", marks=pytest.mark.slow),  # to compile it takes longer than to train it
    ],
)
def test_a_trial_is_bit_for_bit_the_same_alone_and_in_a_pack(model, kernel, recipe, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", kernel)
    trials = two(recipe, model, steps=20)
    together = Training(trials)
    together.advance(stop_at=9)
    for position, member in enumerate(together.members):
        alone = Training([member.trial])
        alone.advance(stop_at=9)
        assert_equal(states(together, position), states(alone))
    assert together.kernel == ("plain" if trials[0].precision == "float64" else kernel)


@every_recipe
def test_a_trial_that_is_resumed_goes_on_exactly(recipe):
    """Step 7 is amid the warm-up, the cosine and the curriculum."""
    trials = two(recipe, steps=20)
    whole, halted = Training(trials), Training(trials)
    whole.advance(stop_at=9)
    halted.advance(stop_at=7)
    saved = [parse_snapshot(snapshot_bytes(halted.snapshot(position)), "checkpoint") for position in range(2)]
    resumed = Training.resume(saved)
    resumed.advance(stop_at=9)
    for position in range(2):
        assert_equal(states(resumed, position), states(whole, position))


def test_rates_on_the_device_are_those_of_the_host():
    schedules = [Schedule("cosine", 3, 10), Schedule("constant", 4, 10), Schedule("cosine", 0, 10), Schedule()]
    rates = LearningRates([1e-2, 1e-3, 1e-4, 1e-5], schedules, torch.device("cpu"))
    for update in range(1, 11):
        found = rates.on_device(torch.tensor(float(update)))
        torch.testing.assert_close(found, torch.tensor(rates.at(update)), rtol=1e-6, atol=0)


@pytest.mark.parametrize("recipe", ["adamw", "sgd with momentum"])
def test_a_schedule_goes_on_in_a_recorded_step(recipe, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    for module in (blocks, batch_positions, token_lookup, vocabularies):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    found = []
    for recorder in (TheStepItself(), Operations()):
        monkeypatch.setattr(train, "find_recorder", lambda device, recorder=recorder: recorder)
        training = Training(two(recipe, steps=20))
        training.advance(stop_at=9)
        found.append(states(training))
    assert_equal(*found)


def test_a_float64_trial_trains_like_a_float64_reference():
    trial = small_trial("rnn", precision="float64", learning_rate=1e-2, clip_norm=0.5)
    training = Training([trial])
    assert {tensor.dtype for tensor in states(training).values()} == {torch.float64}
    drawn = Training([dataclasses.replace(trial, precision="float32")]).snapshot().parameters
    reference = torch.nn.ParameterDict({name.replace(".", "/"): value.double() for name, value in drawn.items()})
    optimiser = torch.optim.Adam(reference.parameters(), lr=1e-2)
    for _ in range(5):
        tokens_1BT, end_1B, target_1B = training.next_batch()
        own = {name.replace("/", "."): value for name, value in reference.items()}
        h_BH = torch.zeros(trial.batch_size, trial.model.width, dtype=torch.float64)
        at_end = torch.zeros_like(h_BH)
        for t, token_B in enumerate(tokens_1BT[0].unbind(1)):
            x_BH = own["embedding"][token_B.clamp(max=trial.vocabulary.readable - 1)]
            into = x_BH @ own["recurrence.weight_ih"].T + own["recurrence.bias_ih"]
            h_BH = torch.tanh(into + h_BH @ own["recurrence.weight_hh"].T + own["recurrence.bias_hh"])
            at_end = torch.where((end_1B[0] == t)[:, None], h_BH, at_end)
        logits_BV = at_end @ own["head.weight"].T + own["head.bias"]
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits_BV, target_1B[0]).backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
        optimiser.step()
        training.advance(stop_at=training.step + 1)
    for name, tensor in training.snapshot().parameters.items():
        torch.testing.assert_close(tensor, reference[name.replace(".", "/")].detach(), rtol=1e-9, atol=1e-11)


def test_a_curriculum_grows_linearly_and_reaches_all_lengths():
    trial = small_trial("rnn", curriculum=0.5, steps=100, min_inputs=2, max_inputs=10)
    assert [longest_inputs(trial, step) for step in (0, 5, 6, 25, 49, 50, 99)] == [2, 2, 3, 6, 10, 10, 10]
    training = Training([trial])
    for step in range(0, 100, 10):
        training.step = step
        _, end_1B, _ = training.next_batch()
        num_inputs = end_1B - 1
        assert 2 <= num_inputs.min() <= num_inputs.max() <= longest_inputs(trial, step)
    assert num_inputs.max() == 10


def test_training_stops_at_the_accuracy_and_not_before():
    trial = small_trial("rnn", modulus=2, width=32, steps=400, learning_rate=1e-2, stop_accuracy=0.9)
    result = train.train(trial)
    *before, last = [point.validation_accuracy for point in result.curve]
    assert result.stop_reason is StopReason.EARLY_STOP
    assert last >= 0.9 > max(before)


@pytest.mark.parametrize("model", ["rnn", "delta_net", "bilinear", "transformer"])
def test_bfloat16_trains_close_to_float32_where_autocast_is_on(model, monkeypatch):
    """A CPU's autocast stands for a GPU's, on the code for GPUs."""
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    monkeypatch.setattr(train, "check_device", lambda trials, device: None)
    for module in (blocks, batch_positions, token_lookup, vocabularies):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    losses = []
    for precision in ("float32", "bfloat16"):
        training = Training([small_trial(model, precision=precision, learning_rate=1e-3)])
        training.advance(stop_at=5)
        losses.append(training.last_losses()[0])
    assert losses[0] != losses[1] or model == "rnn", "bfloat16 must round"
    assert losses[1] == pytest.approx(losses[0], rel=0.01)


def test_bfloat16_is_refused_on_a_cpu_before_anything_is_built():
    with pytest.raises(InvalidSettings, match="precision bfloat16 needs a GPU, and this is a CPU: use float32"):
        Training([small_trial("rnn", precision="bfloat16")])


@pytest.mark.parametrize("model", MODELS)
def test_every_model_trains_in_float64(model):
    training = Training([small_trial(model, precision="float64", validation_samples=8, steps=2, eval_every=2)])
    training.advance(stop_at=1)
    snapshot: Snapshot = training.snapshot()
    moments = snapshot.first.values()
    assert training.kernel == "plain"
    assert {tensor.dtype for tensor in moments} == {torch.float64}
