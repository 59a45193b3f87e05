"""Checks of a worker's machine, which take minutes.

They compare every model with double precision on the CPU, compare a resumed pack with its trials alone, write to the
store and read from it, and time each model's training steps for `orch plan`.
"""

import enum
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orch import models
from orch.models.kernel import PLAIN
from orch.models.network import Network, build
from orch.planning.estimate import rate_key, step_seconds
from orch.running import provenance
from orch.store import Store
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial, make_trial
from orch.tasks.sampling import Batch, Sampler
from orch.training.capture import find_recorder, one_operation_at_a_time
from orch.training.checkpoints import parse_snapshot, snapshot_bytes
from orch.training.host_copy import HostCopy
from orch.training.train import Training, train

TOLERANCE = 1e-3
"""Allowed difference between single and double precision after twelve steps, relative to the largest entry."""
PACK_TOLERANCE = 1e-5
"""Allowed difference between a trial in a pack and alone, relative to the largest entry."""
RATE_SECONDS = 2.0
"""Time for which each model's training steps are timed."""


class CheckState(enum.StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: CheckState
    detail: str
    seconds: float


class Skipped(Exception):
    """Raised by a check that does not apply here; the message says why."""


class Failed(Exception):
    """Raised by a check that found something wrong."""


Check = tuple[str, Callable[[], str]]


def examine(
    store_uri: str,
    device: str,
    rate_seconds: float = RATE_SECONDS,
    names: Sequence[str] = tuple(sorted(models.REGISTRY)),
    definitions: Definitions = BUILT_IN_DEFINITIONS,
) -> Iterator[Finding]:
    """Run all checks of the models `names` of `definitions` in this process, and yield the finding of each."""
    for name, check in checks(store_uri, device, rate_seconds, names, definitions):
        started = time.monotonic()
        try:
            state, detail = CheckState.PASS, check()
        except Skipped as reason:
            state, detail = CheckState.SKIPPED, str(reason)
        except Exception as error:  # every error is a finding, and the other checks continue
            message = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
            state, detail = CheckState.FAIL, " ".join(message.split())
        yield Finding(name, state, detail, time.monotonic() - started)


def checks(
    store_uri: str, device: str, rate_seconds: float, names: Sequence[str], definitions: Definitions
) -> list[Check]:
    def of_each(what: str, check: Callable[[str, str, Definitions], str]) -> list[Check]:
        return [(f"{name}: {what}", functools.partial(check, name, device, definitions)) for name in names]

    built_in = not models.REGISTRY.keys().isdisjoint(names)
    kernels = [("mamba: mamba_ssm against ours", lambda: compare_mamba_kernels(device))] if built_in else []
    return [
        ("device", lambda: describe(device)),
        ("store", lambda: check_store(store_uri)),
        *of_each("outputs and gradients", compare_with_double),
        *kernels,
        *of_each("pack and checkpoint", check_training),
        *(of_each("recorded steps", check_recording) if device != "cpu" else []),
        ("rates", lambda: record_rates(store_uri, device, rate_seconds, names, definitions)),
    ]


def describe(device: str) -> str:
    if device == "cpu":
        return f"CPU, {torch.get_num_threads()} thread, torch {torch.__version__}"
    if torch.backends.cuda.matmul.allow_tf32:
        raise Failed("TF32 is on, which rounds matrix products to three digits: turn it off")
    total = torch.cuda.get_device_properties(device).total_memory / 2**30
    return (
        f"{torch.cuda.get_device_name(device)}, {total:.0f} GiB, torch {torch.__version__}, CUDA {torch.version.cuda}"
    )


def check_store(store_uri: str) -> str:
    store = Store.open(store_uri)
    store.verify()
    return f"{store.location} was written and read from this worker"


def small_trial(name: str, definitions: Definitions = BUILT_IN_DEFINITIONS, **settings: Any) -> Trial:
    shape = {"width": 64, **definitions.models[name].small_settings, **settings}
    sizes = {"steps": 20, "eval_every": 10, "test_length": 20, "curve_lengths": (20,), "validation_samples": 64}
    return make_trial("modular_addition", name, definitions, modulus=5, test_samples=64, **sizes, **shape)


def compare_with_double(
    name: str, device: str, definitions: Definitions = BUILT_IN_DEFINITIONS, **settings: Any
) -> str:
    trial = small_trial(name, definitions, **settings)
    generators = [torch.Generator().manual_seed(seed) for seed in range(2)]
    reference = build(trial.model, trial.vocabulary, generators)
    batch = _batch(trial, num_trials=2)
    here = _copy(reference, device)
    exact = _outputs_and_gradients(_copy(reference, "cpu").double(), batch, "cpu")
    found = _outputs_and_gradients(here, batch, device)
    return _agree(found, exact)


def compare_mamba_kernels(device: str) -> str:
    from orch.models.mamba.scan import kernel

    if kernel(device) == PLAIN:
        raise Skipped("mamba_ssm is not installed, or this is not a GPU: orch uses its own scan")
    # The CPU always uses our own scan, so this compares the two, at the published size.
    return compare_with_double("mamba", device, width=256, layers=4)


def check_training(name: str, device: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> str:
    """Compare three trials of a pack, stopped and resumed from bytes, with each trial alone and uninterrupted."""
    trials = [small_trial(name, definitions, init_seed=seed, data_seed=seed, learning_rate=1e-3) for seed in range(3)]
    pack = Training(trials, device)
    pack.advance(stop_at=5)
    copied = HostCopy().take([pack.view(position) for position in range(len(trials))])
    pack.advance(stop_at=7)  # as a worker trains on while its checkpoint is written
    saved = [snapshot_bytes(snapshot) for snapshot in copied.wait()]
    resumed = Training.resume([parse_snapshot(data, "a checkpoint", definitions) for data in saved], device)
    while not resumed.finished:
        resumed.advance()
    together = {result.trial.id: result.parameters for result in resumed.results}
    worst = 0.0
    for trial in trials:
        for key, tensor in train(trial, device).parameters.items():
            worst = max(worst, _distance(together[trial.id][key], tensor))
    if not worst <= PACK_TOLERANCE:
        raise Failed(f"a resumed pack differs from its trials alone by {worst:.1e}: more than {PACK_TOLERANCE:g}")
    return "bit for bit" if worst == 0 else f"within {worst:.1e}"


def check_recording(name: str, device: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> str:
    """Compare the losses of steps that are recorded and replayed with those of steps one operation at a time."""
    if find_recorder(torch.device(device)) is None:
        raise Skipped("ORCH_CAPTURE is off")
    trials = [small_trial(name, definitions, init_seed=seed, data_seed=seed, learning_rate=1e-3) for seed in range(2)]

    def losses() -> tuple[list[float], list[str]]:
        training = Training(trials, device)
        training.advance()
        return [member.curve[0].train_loss for member in training.members], training.warnings

    recorded, warnings = losses()
    if warnings:
        raise Failed("; ".join(warnings))
    with one_operation_at_a_time():
        ordinary, _ = losses()
    worst = max(abs(one - other) / abs(other) for one, other in zip(recorded, ordinary, strict=True))
    if not worst <= TOLERANCE:
        problem = f"the losses of recorded steps differ by {worst:.1e}, more than {TOLERANCE:g}"
        raise Failed(f"{problem}: set ORCH_CAPTURE=off for the workers")
    return "the same losses" if worst == 0 else f"losses within {worst:.1e}"


def record_rates(
    store_uri: str,
    device: str,
    seconds: float,
    names: Sequence[str],
    definitions: Definitions = BUILT_IN_DEFINITIONS,
) -> str:
    """Record how long training steps take at the published size, as a ratio to the computed time, for plans.

    Ratios of other models that were recorded for this device are kept.
    """
    ratios, speeds = {}, []
    for name in names:
        trial = make_trial("modular_addition", name, definitions, modulus=5)
        measured = _step_seconds(trial, device, seconds)
        ratios[rate_key(trial.model)] = measured / step_seconds(trial, "cpu" if device == "cpu" else "gpu")
        speeds.append(f"{name} {1 / measured:.0f}")
    place = provenance.machine(device, torch.get_num_threads())
    store = Store.open(store_uri)
    key = "".join(letter if letter.isalnum() else "-" for letter in place["device"].lower())
    path = f"rates/{key}.json"
    known = (store.get_json(path) or {}).get("ratios", {})
    store.put_json(path, {"device": place["device"], "host": place["host"], "ratios": known | ratios})
    return "training steps a second with the default settings: " + ", ".join(speeds)


def _step_seconds(trial: Trial, device: str, seconds: float) -> float:
    """Return the median time of a training step, without the first few."""
    training = Training([trial], device)
    taken: list[float] = []
    until = time.monotonic() + seconds
    while len(taken) < 4 or time.monotonic() < until:
        started = time.perf_counter()
        training.advance(stop_at=training.step + 1)
        if device != "cpu":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - started)
        if training.step >= trial.eval_every - 1:
            break
    return sorted(taken[2:])[len(taken[2:]) // 2]


def _batch(trial: Trial, num_trials: int) -> Sequence[Tensor]:
    sampler = Sampler(trial.task)
    batches: list[Batch] = []
    for seed in range(num_trials):
        generator = torch.Generator().manual_seed(seed)
        batches.append(sampler.draw(generator, 16, trial.min_inputs, trial.max_inputs))
    return [torch.stack(parts) for parts in zip(*batches, strict=True)]


def _copy(network: Network, device: str) -> Network:
    kind: type[Network] = network.config.network()
    members = [network.member(position) for position in range(network.num_trials)]
    return kind(network.config, network.vocabulary, members).to(device)


def _outputs_and_gradients(network: Network, batch: Sequence[Tensor], device: str) -> dict[str, Tensor]:
    tokens_KBT, end_KB, target_KB = (part.to(device) for part in batch)
    logits_KBV = network(tokens_KBT, end_KB)
    loss = torch.nn.functional.cross_entropy(logits_KBV.flatten(0, 1), target_KB.flatten())
    trained = [name for name in network.names if network[name].requires_grad]
    gradients = torch.autograd.grad(loss, [network[name] for name in trained])
    found = {
        "outputs": logits_KBV,
        **{f"the gradient of {name}": g for name, g in zip(trained, gradients, strict=True)},
    }
    return {name: tensor.detach().cpu() for name, tensor in found.items()}


def _agree(found: dict[str, Tensor], expected: dict[str, Tensor]) -> str:
    distances = {name: _distance(found[name], expected[name]) for name in expected}
    name = max(distances, key=lambda each: math.inf if math.isnan(distances[each]) else distances[each])
    distance = f"{distances[name]:.1e} from double precision on the CPU"
    if not distances[name] <= TOLERANCE:
        raise Failed(f"{name} differs by {distance}: more than {TOLERANCE:g}")
    return f"at most {distance}"


def _distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference, relative to the largest entry."""
    one, other = one.detach().cpu().double(), other.detach().cpu().double()
    return float((one - other).abs().max() / other.abs().max().clamp_min(1e-12))
