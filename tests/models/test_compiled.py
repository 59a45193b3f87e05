"""The compiled kernels give the losses and gradients of their plain twins, within rounding."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from orch import models
from orch.core.errors import InvalidSettings
from orch.models.compiled.activation import sigmoid
from orch.models.compiled.jit import cache_folder, jit, source_digest
from orch.models.kernel import COMPILED, PLAIN, choose_kernel
from orch.models.network import Network, build, per_trial_loss
from orch.models.token_table import OuterProducts
from orch.tasks import REGISTRY
from orch.tasks.sampling import Batch, Sampler
from orch.training.adam import StackedAdam
from orch.training.evaluation import evaluate

K, B = 3, 21
TASK = REGISTRY["modular_addition"](modulus=5)

BLOCKS = [
    (1, 3),
    (1, 7),
    (1, 64),
    (2, 1),
    (2, 9),
    (2, 64),
    (3, 5),
    (4, 16),
    (5, 20),
    (8, 3),
    (8, 8),
    (8, 32),
    (16, 1),
    (17, 2),
]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{n} blocks of {b}": ("block_diagonal", {"width": b * n, "block_size": b}) for b, n in BLOCKS},
    "bilinear, width 5": ("bilinear", {"width": 5}),
    "bilinear, width 24": ("bilinear", {"width": 24}),
    "rotation, width 2": ("rotation", {"width": 2}),
    "rotation, width 22": ("rotation", {"width": 22}),
    "factored, through the factors": ("factored", {"width": 21, "rank": 3}),
    "factored, multiplied out": ("factored", {"width": 8, "rank": 64}),
    **{f"{model}, width {width}": (model, {"width": width}) for model in ("rnn", "lstm") for width in (1, 13, 64, 144)},
    "mamba, one layer": ("mamba", {"width": 40, "layers": 1}),
    "mamba, three layers": ("mamba", {"width": 16, "layers": 3, "expansion": 3, "state_size": 5, "time_step_rank": 7}),
    "mamba, filters of one position": ("mamba", {"width": 16, "kernel_size": 1}),
    "mamba, filters longer than samples": ("mamba", {"width": 16, "layers": 2, "kernel_size": 9}),
}
LARGE = {"embedding_scale": 1.0, "init_scale": 0.5}
"""Initial parameters at which a state that is never divided does not vanish."""
VARIANTS: dict[str, dict[str, Any]] = {
    **{kind: {"train_normalisation": kind} for kind in ("unit", "rms", "block")},
    **{kind: {"train_normalisation": kind, **LARGE} for kind in ("none", "unit-final", "rms-final", "block-final")},
    "additive": {"additive": "input+constant"},
    "constant": {"additive": "constant", "train_normalisation": "unit"},
    "frozen": {"frozen": True},
}


def network_of(
    kind: str | tuple[str, dict[str, Any]], task: Any = TASK, num_trials: int = K, **settings: Any
) -> Network:
    model, own = KINDS[kind] if isinstance(kind, str) else kind
    config = models.REGISTRY[model](**own | settings)
    vocabulary = models.Vocabulary(task.vocabulary, task.num_readable)
    return build(config, vocabulary, [torch.Generator().manual_seed(seed) for seed in range(num_trials)])


def draw(task: Any = TASK, shortest: int = 1, longest: int = 10, num_trials: int = K) -> list[torch.Tensor]:
    sampler = Sampler(task)
    batches = [sampler.draw(sampler.generator(trial), B, shortest, longest) for trial in range(num_trials)]
    return [torch.stack(parts) for parts in zip(*batches, strict=True)]


def assert_same_gradients(network: Network, batch: list[torch.Tensor], tolerance: float = 5e-5) -> None:
    tokens, end, target = batch
    trained = [name for name in network.names if network.config.is_trained(name)]
    loss = per_trial_loss(network(tokens, end), target).mean(1)
    expected = torch.autograd.grad(loss.sum(), [network[name] for name in trained])
    found_loss, found = network.compiled_gradients(tokens, target)
    torch.testing.assert_close(found_loss, loss.detach(), rtol=1e-5, atol=1e-6)
    for name, gradient in zip(trained, expected, strict=True):
        its = found[name]
        its = its.written_out().view_as(gradient) if isinstance(its, OuterProducts) else its
        worst = (its - gradient).abs().max().item()
        assert worst <= tolerance * gradient.abs().max().item() + 1e-7, f"{name} differs by {worst}"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_are_those_of_the_plain_twin(kind):
    assert_same_gradients(network_of(kind), draw())


@pytest.mark.thorough
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "kind", ["9 blocks of 2", "32 blocks of 8", "2 blocks of 17", "bilinear, width 24", "rotation, width 22",
             "factored, through the factors", "factored, multiplied out"],
)  # fmt: skip
def test_every_normalisation_and_additive_term_is_that_of_the_plain_twin(kind, variant):
    # A block that nearly vanishes has a large gradient, most of which cancels.
    tolerance = 2e-4 if variant.startswith("block") else 5e-5
    assert_same_gradients(network_of(kind, **VARIANTS[variant]), draw(), tolerance)


@pytest.mark.parametrize(
    "kind", ["64 blocks of 2", "2 blocks of 17", "rotation, width 22", "lstm, width 13", "rnn, width 13"]
)
def test_sequences_of_500_inputs_have_the_states_of_the_plain_twin(kind):
    network = network_of(kind)
    tokens, end, _ = draw(shortest=500, longest=500)
    network.eval()
    with torch.no_grad():
        plain = network(tokens, end)
        network.kernel = COMPILED
        compiled = network(tokens, end)
    torch.testing.assert_close(compiled, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("variant", ["none", "unit-final", "rms-final", "block-final"])
@pytest.mark.parametrize("size", [1e-38, 1e-24, 1e-20, 1.0])
def test_a_state_that_vanishes_has_the_finite_gradients_of_the_plain_twin(variant, size):
    vanishes = [("block_diagonal", {"block_size": b, "width": 16}) for b in (1, 2, 8, 16)]
    vanishes += [("factored", {"width": 24, "rank": 3}), ("factored", {"width": 8, "rank": 64})]
    batch = draw(longest=20)
    for model, settings in vanishes:
        network = network_of((model, settings), train_normalisation=variant)
        with torch.no_grad():
            network["initial_state"].mul_(size)
        assert_same_gradients(network, batch, tolerance=2e-4)


def test_a_large_vocabulary_has_the_gradients_of_the_plain_twin():
    task = REGISTRY["modular_addition"](modulus=50)
    assert task.num_readable > 16
    for kind in (
        "32 blocks of 8",
        "rotation, width 22",
        "lstm, width 13",
        "factored, through the factors",
        "mamba, one layer",
    ):
        assert_same_gradients(network_of(kind, task), draw(task))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_plain_twin(kind):
    network = network_of(kind)
    sampler = Sampler(TASK)
    batch: Batch = sampler.draw(sampler.generator("scores"), 100, 2, 10)
    plain = evaluate(network, batch)
    network.kernel = COMPILED
    for found, expected in zip(evaluate(network, batch), plain, strict=True):
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
        assert found.accuracy == pytest.approx(expected.accuracy, abs=0.011)


@pytest.mark.parametrize("num_tokens", [1, 7, 8, 11])
def test_adam_on_outer_products_is_adam_on_the_gradient_written_out(num_tokens):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(2, 6, 5, 9, generator=generator)
    ours = StackedAdam([weight.clone()], [1e-2, 1e-3])
    plain_weight = weight.clone()
    plain = StackedAdam([plain_weight], [1e-2, 1e-3])
    for _ in range(5):
        products = OuterProducts(
            torch.randn(2, num_tokens, 30, generator=generator), torch.randn(2, num_tokens, 9, generator=generator)
        )
        ours.update([products])
        plain.update([products.written_out().view_as(weight)])
    torch.testing.assert_close(ours.parameters[0], plain_weight, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.first[0], plain.first[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.second[0], plain.second[0], rtol=1e-5, atol=1e-6)


@jit
def _sigmoids(x, y):
    for m in range(len(x)):
        y[m] = sigmoid(x[m])


def test_the_sigmoid_is_exact_to_single_precision_and_keeps_nan():
    x = torch.cat(
        [torch.linspace(-100, 100, 4001), torch.linspace(-2, 2, 1001), torch.tensor([float("nan"), float("inf")])]
    )
    y = torch.empty_like(x)
    _sigmoids(x.numpy(), y.numpy())
    torch.testing.assert_close(y.double(), x.double().sigmoid(), rtol=5e-7, atol=1e-37, equal_nan=True)


@pytest.mark.parametrize(
    "kind",
    ["64 blocks of 2", "bilinear, width 24", "lstm, width 13", "factored, through the factors", "mamba, one layer"],
)
def test_a_diverged_trial_shows_in_its_loss(kind):
    network = network_of(kind)
    tokens, _, target = draw()
    with torch.no_grad():
        network[network.names[0]][1].fill_(float("nan"))
    loss, _ = network.compiled_gradients(tokens, target)
    assert loss.isnan().tolist() == [False, True, False]


def test_the_kernel_is_chosen_by_device_and_variable(monkeypatch):
    monkeypatch.delenv("ORCH_KERNEL", raising=False)
    assert (choose_kernel("cpu"), choose_kernel("cuda")) == (COMPILED, PLAIN)
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    assert choose_kernel("cpu") == PLAIN
    monkeypatch.setenv("ORCH_KERNEL", "fast")
    with pytest.raises(InvalidSettings, match="use plain, compiled or triton"):
        choose_kernel("cpu")


def test_a_model_derived_from_a_compiled_one_runs_the_plain_kernel(monkeypatch):
    monkeypatch.delenv("ORCH_KERNEL", raising=False)

    class Derived(models.REGISTRY["rnn"]):
        name = "derived"

    assert models.REGISTRY["rnn"](width=64).kernel_name("cpu") == PLAIN
    assert (models.REGISTRY["rnn"]().kernel_name("cpu"), Derived().kernel_name("cpu")) == (COMPILED, PLAIN)


def test_without_numba_everything_runs_on_the_plain_kernel():
    program = """
import sys
sys.modules["numba"] = None
from orch.training.train import Training
from tests.small import small_trial
training = Training([small_trial("rnn", steps=2, eval_every=1)])
while not training.finished:
    training.advance()
print(training.kernel)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [PLAIN]


def test_machine_code_is_kept_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "orch" / "kernels"
    monkeypatch.setenv("ORCH_KERNEL_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORCH_KERNEL_CACHE", str(tmp_path / "file" / "below"))
    assert cache_folder() is None


def test_machine_code_is_made_anew_when_any_kernel_has_changed(tmp_path):
    (tmp_path / "called.py").write_text("x = 1")
    (tmp_path / "caller.py").write_text("from called import x")
    before = source_digest(tmp_path)
    assert source_digest(tmp_path) == before
    (tmp_path / "called.py").write_text("x = 2")
    assert source_digest(tmp_path) != before


def test_machine_code_lies_in_a_folder_for_this_version():
    from numba.core import config

    assert config.CACHE_DIR.endswith(source_digest())


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 1, 1), (9, 5, 7), (17, 300, 40), (64, 64, 96)])
def test_a_product_by_tiles_is_exact_to_rounding_and_the_same_for_any_number_of_rows(rows, terms, columns):
    from orch.models.compiled.tile import PANEL, add_product

    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(size, terms, generator=generator) for size in (rows, columns))
    panel, out, first = torch.empty(PANEL).numpy(), torch.ones(rows, columns), torch.ones(1, columns)
    add_product(x.numpy(), weight.numpy().T, out.numpy(), panel)
    add_product(x[-1:].numpy(), weight.numpy().T, first.numpy(), panel)
    torch.testing.assert_close(out, (1 + x.double() @ weight.double().T).float(), rtol=1e-5, atol=1e-4)
    assert torch.equal(out[-1:], first)
