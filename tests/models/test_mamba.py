"""Our Mamba has the parameters, outputs, gradients and initial distributions of transformers' Mamba."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv1d, cross_entropy, silu
from transformers import MambaConfig, MambaForCausalLM

from orch.core.errors import BrokenPackage
from orch.models import Vocabulary, kernel
from orch.models.mamba import network, scan
from orch.models.mamba.config import Config
from orch.models.network import build
from tests.mamba_packages import mamba_packages

VOCABULARY = Vocabulary(size=11, readable=9)


def reference(config: Config) -> MambaForCausalLM:
    settings = MambaConfig(
        vocab_size=VOCABULARY.size,
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        expand=config.expansion,
        state_size=config.state_size,
        conv_kernel=config.kernel_size,
        time_step_rank=config.time_step_rank,
        use_mambapy=False,
        use_cache=False,
    )
    return MambaForCausalLM(settings)


def fresh(config: Config, seed: int = 1) -> dict[str, Tensor]:
    return network.Network.fresh(config, VOCABULARY, torch.Generator().manual_seed(seed))


def perturbed(config: Config, seed: int) -> dict[str, Tensor]:
    """Return parameters without special values, such as the zeros and ones that many start from."""
    generator = torch.Generator().manual_seed(seed)
    return {name: p + 0.1 * torch.randn(p.shape, generator=generator) for name, p in fresh(config, seed).items()}


def samples(num_samples: int = 7, num_tokens: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    tokens_BT = torch.randint(VOCABULARY.readable, (num_samples, num_tokens), generator=generator)
    end_B = torch.randint(1, num_tokens, (num_samples,), generator=generator)
    return tokens_BT, end_B, torch.randint(VOCABULARY.size, (num_samples,), generator=generator)


def assert_close(ours: Tensor, theirs: Tensor, name: str, tolerance: float = 1e-4) -> None:
    error = (ours - theirs).abs().max() / theirs.abs().max()
    assert error < tolerance, f"{name} differs by {error:.1e} times its largest value"


@pytest.mark.parametrize(
    "config",
    [Config(width=64), Config(width=64, layers=2), Config(width=40, expansion=3, state_size=5, kernel_size=3)],
    ids=["one layer", "two layers", "odd sizes"],
)
def test_logits_and_gradients_are_those_of_transformers(config):
    tokens_BT, end_B, target_B = samples()
    parameters = perturbed(config, 1)
    theirs = reference(config)
    theirs.load_state_dict(parameters | {"lm_head.weight": parameters["backbone.embeddings.weight"]})
    their_logits = theirs(tokens_BT).logits[torch.arange(len(end_B)), end_B]
    cross_entropy(their_logits, target_B).backward()

    ours = network.Network(config, VOCABULARY, [parameters])
    our_logits = ours(tokens_BT[None], end_B[None])[0]
    cross_entropy(our_logits, target_B).backward()

    assert_close(our_logits, their_logits, "logits")
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    assert gradients.keys() == set(ours.names)
    for name in ours.names:
        assert_close(ours[name].grad[0], gradients[name], name)


@pytest.mark.parametrize("layers", [1, 2])
def test_parameters_have_the_names_and_shapes_that_the_config_lists_and_transformers_uses(layers):
    config = Config(width=24, layers=layers)
    expected = {name: tuple(p.shape) for name, p in reference(config).named_parameters()}
    assert {name: tuple(p.shape) for name, p in fresh(config).items()} == expected == config.shapes(VOCABULARY)


def test_every_parameter_starts_from_the_distribution_that_transformers_draws_from():
    config = Config(width=96, layers=2)
    torch.manual_seed(2)
    theirs = dict(reference(config).named_parameters())
    for name, ours in fresh(config).items():
        sample, other = (p.detach().flatten().sort().values for p in (ours, theirs[name]))
        if sample.unique().numel() <= config.state_size:  # constants, which must agree element by element
            assert torch.allclose(ours, theirs[name]), name
            continue
        both = torch.cat([sample, other])
        shares = [torch.searchsorted(each, both, right=True) / len(each) for each in (sample, other)]
        distance = (shares[0] - shares[1]).abs().max().item()
        # The Kolmogorov–Smirnov test at a false alarm rate of 1 in 20,000, for each of about twenty parameters.
        assert distance < 2.3 * math.sqrt(2 / len(sample)), f"{name}: {distance}"


def test_time_steps_start_between_a_thousandth_and_a_tenth():
    bias_I = fresh(Config(width=256))["backbone.layers.0.mixer.dt_proj.bias"]
    delta_I = torch.nn.functional.softplus(bias_I.double())
    assert 0.001 * 0.999 < delta_I.min() < 0.0012
    assert 0.08 < delta_I.max() < 0.1 * 1.001


def test_the_seed_alone_decides_the_initial_parameters():
    config = Config(width=16)
    before = torch.random.get_rng_state()
    first, again, other = fresh(config, 1), fresh(config, 1), fresh(config, 2)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["backbone.embeddings.weight"], other["backbone.embeddings.weight"])


@pytest.mark.parametrize("layers", [1, 3])
def test_tokens_after_the_end_change_nothing(layers):
    config = Config(width=16, layers=layers)
    model = build(config, VOCABULARY, [torch.Generator().manual_seed(1)])
    tokens_BT, end_B, _ = samples()
    padded = torch.where(torch.arange(tokens_BT.shape[1]) > end_B[:, None], VOCABULARY.readable, tokens_BT)
    assert not torch.equal(padded, tokens_BT)
    assert torch.equal(model(padded[None], end_B[None]), model(tokens_BT[None], end_B[None]))


def test_evaluation_in_uneven_pieces_gives_the_logits_of_training(monkeypatch):
    config = Config(width=16, layers=2)
    model = network.Network(config, VOCABULARY, [perturbed(config, 1)])
    tokens_BT, end_B, _ = samples()
    expected = model(tokens_BT[None], end_B[None])
    monkeypatch.setattr(network, "POSITIONS_AT_ONCE", 3 * tokens_BT.shape[1])
    monkeypatch.setattr(scan, "STATES_AT_ONCE", 2 * config.inner * config.state_size)
    with torch.no_grad():
        assert_close(model(tokens_BT[None], end_B[None]), expected, "logits", 1e-5)


def test_a_stack_of_trials_gives_each_its_own_logits_and_gradients():
    config = Config(width=16)
    members = [perturbed(config, 1), perturbed(config, 2)]
    tokens_BT, end_B, target_B = samples()
    stack = network.Network(config, VOCABULARY, members)
    logits_KBV = stack(tokens_BT.expand(2, -1, -1), end_B.expand(2, -1))
    sum(cross_entropy(logits, target_B) for logits in logits_KBV).backward()
    for trial, member in enumerate(members):
        alone = network.Network(config, VOCABULARY, [member])
        logits_BV = alone(tokens_BT[None], end_B[None])[0]
        cross_entropy(logits_BV, target_B).backward()
        assert_close(logits_KBV[trial], logits_BV, "logits", 1e-5)
        for name in alone.names:
            assert_close(stack[name].grad[trial], alone[name].grad[0], name, 1e-5)


def scan_inputs(num_tokens: int = 5) -> list[Tensor]:
    T, B, I, N = num_tokens, 3, 4, 2  # noqa: E741
    generator = torch.Generator().manual_seed(3)
    shapes = [(2, T, B, I), (2, T, B, I), (2, I, N), (2, T, B, N), (2, T, B, N)]
    inputs = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    inputs[1] = inputs[1].abs()
    return [each.requires_grad_() for each in inputs]


@pytest.mark.parametrize("num_tokens", [1, 5])
@pytest.mark.parametrize("num_samples", [1, 2, 3])
def test_the_gradient_of_the_scan_is_right_however_samples_are_divided(num_samples, num_tokens, monkeypatch):
    inputs = scan_inputs(num_tokens)
    monkeypatch.setattr(scan, "STATES_AT_ONCE", num_samples * inputs[2][0].numel())
    monkeypatch.setattr(scan, "STATES_KEPT_AT_ONCE", num_samples * inputs[2][0].numel() * num_tokens)
    assert torch.autograd.gradcheck(scan.scan, inputs)


def test_the_scan_is_the_recurrence_written_out():
    inputs = scan_inputs()
    x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN = (each[1] for each in inputs)
    h_BIN, expected = torch.zeros(x_TBI.shape[1], *A_log_IN.shape), []
    for x, delta, B, C in zip(x_TBI, delta_TBI, B_TBN, C_TBN, strict=True):
        h_BIN = torch.exp(-delta[..., None] * A_log_IN.exp()) * h_BIN + (delta * x)[..., None] * B[:, None]
        expected.append((h_BIN * C[:, None]).sum(-1))
    assert_close(scan.scan(*inputs)[1], torch.stack(expected), "y", 1e-12)


@pytest.mark.parametrize("num_tokens", [1, 3, 6])
def test_the_convolution_and_its_gradient_are_right_even_when_longer_than_the_sequence(num_tokens):
    generator = torch.Generator().manual_seed(4)
    shapes = [(2, num_tokens, 2, 3), (2, 3, 1, 4), (2, 3)]
    inputs = [torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes]
    u_TBI, weight_I1J, bias_I = (each[1] for each in inputs)
    expected_BIT = conv1d(u_TBI.permute(1, 2, 0), weight_I1J, bias_I, padding=3, groups=3)[..., :num_tokens]
    assert_close(scan.convolve(*inputs)[1], silu(expected_BIT.permute(2, 0, 1)), "x", 1e-12)
    assert torch.autograd.gradcheck(scan.convolve, inputs)


def test_the_cuda_packages_are_called_as_documented_with_trials_as_groups_of_channels(monkeypatch):
    def selective_scan_fn(u, delta, A, B, C):
        h_BIN, outputs = torch.zeros(*u.shape[:2], A.shape[1]), []
        for t in range(u.shape[2]):
            B_t, C_t = (each[..., t].repeat_interleave(len(A) // each.shape[1], dim=1) for each in (B, C))
            h_BIN = torch.exp(delta[:, :, t, None] * A) * h_BIN + (delta * u)[:, :, t, None] * B_t
            outputs.append((h_BIN * C_t).sum(-1))
        return torch.stack(outputs, 2)

    def causal_conv1d_fn(x, weight, bias, activation):
        assert activation == "silu"
        padding = weight.shape[1] - 1
        return silu(conv1d(x, weight[:, None], bias, padding=padding, groups=len(weight))[..., : x.shape[2]])

    config = Config(width=16, layers=2)
    model = network.Network(config, VOCABULARY, [perturbed(config, 1), perturbed(config, 2)])
    tokens_BT, end_B, _ = samples()
    tokens_KBT, end_KB = tokens_BT.expand(2, -1, -1), end_B.expand(2, -1)
    expected = model(tokens_KBT, end_KB)
    monkeypatch.setattr(scan, "_kernels_for", lambda x: (selective_scan_fn, causal_conv1d_fn))
    assert_close(model(tokens_KBT, end_KB), expected, "logits", 1e-5)


def test_our_own_scan_runs_on_the_cpu_compiled_or_plain(monkeypatch):
    assert Config().kernel_name("cpu") == "compiled-2"
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    assert Config().kernel_name("cpu") == "plain"


@pytest.mark.parametrize("num_tokens", [1, 2, 12])
def test_the_compiled_scan_and_its_gradients_are_those_of_the_plain_one(num_tokens):
    K, T, B, I, N = 2, num_tokens, 5, 24, 3  # noqa: E741
    generator = torch.Generator().manual_seed(3)
    shapes = [(K, T, B, I), (K, T, B, I), (K, I, N), (K, T, B, N), (K, T, B, N)]
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    inputs[1] = inputs[1].abs()
    inputs = [each.requires_grad_() for each in inputs]
    weight = torch.randn(K, T, B, I, generator=generator)
    plain, compiled = (scan.scan(*inputs, compiled=each) for each in (False, True))
    assert_close(compiled, plain, "y", 1e-6)
    for name, one, other in zip(
        ("x", "delta", "A_log", "B", "C"),
        torch.autograd.grad(compiled, inputs, weight),
        torch.autograd.grad(plain, inputs, weight),
        strict=True,
    ):
        assert (one - other).abs().max() <= 1e-5 * other.abs().max(), name


def test_a_step_faster_than_any_number_forgets_the_state():
    x, B = torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 1)
    delta = torch.tensor([1.0, 1e30]).view(1, 2, 1, 1).expand_as(x)
    for compiled in (False, True):
        y = scan.scan(x, delta, torch.zeros(1, 4, 1), B, B, compiled=compiled)
        assert torch.allclose(y[0, 1], torch.full((4,), 1e30))


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Return a function that installs Mamba's CUDA packages with these contents."""
    monkeypatch.setattr(kernel, "triton_found", lambda: False)
    with mamba_packages(tmp_path, monkeypatch, "selective_scan_fn = 'scan'") as install:
        yield install


def test_with_triton_a_gpu_uses_our_kernels_whatever_else_is_installed(packages, monkeypatch):
    packages(mamba_ssm="", causal_conv1d="causal_conv1d_fn = 'convolution'")
    monkeypatch.setattr(kernel, "triton_found", lambda: True)
    assert Config().kernel_name("cuda") == "triton"
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    assert Config().kernel_name("cuda") == "mamba_ssm"


def test_without_triton_and_the_cuda_packages_a_gpu_uses_our_plain_scan(packages, monkeypatch):
    monkeypatch.setattr(scan.importlib.util, "find_spec", lambda name: None)
    assert Config().kernel_name("cuda") == "plain"


def test_the_cuda_packages_are_used_where_both_load(packages):
    packages(mamba_ssm="", causal_conv1d="causal_conv1d_fn = 'convolution'")
    assert Config().kernel_name("cuda") == "mamba_ssm"
    assert Config().kernel_name("cpu") == "compiled-2"


def test_a_cuda_package_built_for_another_torch_is_an_error_on_a_gpu_and_not_a_slow_path(packages):
    packages(mamba_ssm="raise ImportError('undefined symbol: _ZN3c104cuda9SetDeviceEi')", causal_conv1d="")
    with pytest.raises(BrokenPackage, match="cannot be loaded"):
        Config().kernel_name("cuda")
    assert Config().kernel_name("cpu") == "compiled-2"


def test_one_cuda_package_without_the_other_is_an_error_on_a_gpu(packages, monkeypatch):
    monkeypatch.setattr(scan.importlib.util, "find_spec", lambda name: name if name == "mamba_ssm" else None)
    with pytest.raises(BrokenPackage, match="causal_conv1d is missing: install both"):
        Config().kernel_name("cuda")


def test_with_negative_eigenvalues_the_scan_and_its_gradients_are_those_of_the_equation():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, delta, A_log = normal(2, 7, 3, 5), normal(2, 7, 3, 5).exp(), normal(2, 5, 4)
    inputs = [each.requires_grad_() for each in (x, delta, A_log, normal(2, 7, 3, 4), normal(2, 7, 3, 4))]
    x, delta, A_log, B, C = inputs
    factor = 2 * torch.exp(delta[..., None] * -A_log.exp()[:, None, None]) - 1
    assert factor.min() < -0.5
    assert factor.max() < 1
    h, expected = torch.zeros(2, 3, 5, 4, dtype=torch.float64), []
    for t in range(7):
        h = factor[:, t] * h + B[:, t, :, None] * (delta * x)[:, t, ..., None]
        expected.append((h * C[:, t, :, None]).sum(-1))
    y = torch.stack(expected, dim=1)
    found = scan.scan(*inputs, negative_eigenvalues=True)
    torch.testing.assert_close(found, y)
    weight = normal(*y.shape)
    gradients = [torch.autograd.grad((each * weight).sum(), inputs) for each in (found, y)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_with_negative_eigenvalues_only_the_plain_kernel_runs(device, monkeypatch):
    config = Config(width=16, negative_eigenvalues=True)
    for wanted in ("compiled", "triton", "plain"):
        monkeypatch.setenv("ORCH_KERNEL", wanted)
        assert config.kernel_name(device) == kernel.PLAIN
    assert (config.table_variant, Config.title_of("negative")) == ("negative", "Mamba [-1, 1]")
    signed, unsigned = (
        build(each, VOCABULARY, [torch.Generator().manual_seed(0)]) for each in (config, Config(width=16))
    )
    tokens, end = torch.randint(9, (1, 4, 6)), torch.full((1, 4), 5)
    assert not torch.allclose(signed(tokens, end), unsigned(tokens, end))
