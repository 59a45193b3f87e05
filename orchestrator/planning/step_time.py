"""The time of a training step, of a validation and of the tests, for a pack of equal trials. No torch.

Everything is computed from three counts of the model's settings: launches of kernels, bytes moved and operations. A
pack starts its kernels once, and moves and computes for each of its trials. Estimates of hours and sizes of packs both
come from here, so that they agree.
"""

import functools
import importlib.util
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from orch.models.config import ModelConfig, Vocabulary
from orch.models.kernel import COMPILED, PLAIN, TRITON, VARIABLE
from orch.models.module_config import ModuleConfig
from orch.sweeps.batches import FEWEST_AT_ONCE, STEPS_PER_BLOCK, TOKENS_AT_ONCE
from orch.sweeps.recipe import FLOAT32
from orch.sweeps.trial import Trial

BYTES = 4
"""Bytes of a parameter, and of an entry of a state."""
PASSES_OVER_PARAMETERS = {PLAIN: 10, TRITON: 8}
"""Reads and writes of every parameter in a step: one forwards, two by the gradients, seven by Adam. Triton's kernels
write no gradients of token tables."""
EVALUATION_LAUNCHES = 0.48
"""Kernels of a forward pass without gradients, as a share of those of a training step."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The assumed speed of a GPU. None of its numbers were measured here: `orch doctor` measures steps."""

    seconds_per_launch: float = 2.2e-6
    """Time of a kernel that does next to nothing."""
    host_seconds_per_launch: float = 5.5e-6
    """Time of the host to start a kernel."""
    seconds_per_replay: float = 10e-6
    """Time to start a recorded step."""
    bytes_per_second: float = 1.3e12
    cached_bytes_per_second: float = 3e12
    cache: float = 30e6
    """Bytes up to which what a kernel reads and writes stays in the cache."""
    operations_per_second: float = 14e12
    unevenness: float = 3.0
    """Bytes that the large kernels of a step move, as a multiple of the mean of all."""


@dataclass(frozen=True, slots=True)
class Core:
    """The speed of a CPU core with one kind of kernels, in seconds, fitted to training steps of all models.

    The core is one of an AMD EPYC of a cloud server, at widths 16, 64 and 256, in packs of 1 to 9.
    """

    per_step: float
    per_launch: float
    per_operation: float
    per_operation_of_width_one: float
    """Products of narrow matrices are slower: this over the width is added to the time of an operation."""
    per_parameter: float
    per_entry: float
    """For each of a model's `num_entries`."""
    cache: float
    """Numbers (parameters and entries) up to which a pack stays in the cache."""
    per_spilled: float
    """For each number beyond the cache."""
    per_evaluated_position: float
    """For each token of an evaluation, whatever the model. The next two are for evaluations as well."""
    per_evaluated_operation: float
    per_evaluated_entry: float


SECONDS_PER_DRAWN_TOKEN = 20e-9
"""Time of a CPU core to draw a token of a test, with the answer that is right most often. A pack shares its samples."""
START_SECONDS = 7.0
"""Time that Ray and its workers take to start on one machine, before the first training step: 5 to 8 seconds."""
ASSUMED_IN = "November 2026"
A100 = Gpu()
CORES: Mapping[str, Core] = {
    PLAIN: Core(
        per_step=0.0,
        per_launch=3.55e-6,
        per_operation=7.6e-12,
        per_operation_of_width_one=40e-12,
        per_parameter=1.2e-9,
        per_entry=1.4e-9,
        cache=1e6,
        per_spilled=0.4e-9,
        per_evaluated_position=30e-9,
        per_evaluated_operation=12e-12,
        per_evaluated_entry=0.42e-9,
    ),
    COMPILED: Core(
        per_step=110e-6,
        per_launch=4.8e-6,
        per_operation=4.6e-12,
        per_operation_of_width_one=250e-12,
        per_parameter=0.76e-9,
        per_entry=0.51e-9,
        cache=1e6,
        per_spilled=0.19e-9,
        per_evaluated_position=45e-9,
        per_evaluated_operation=8.5e-12,
        per_evaluated_entry=0.21e-9,
    ),
}


def on_cpu(device: str) -> bool:
    return device.startswith("cpu")


def planned_kernel(model: ModelConfig, device: str = "cpu", several_places: bool = False) -> str:
    """Return the kernel that new trials would use on `device`, which may be on another machine.

    With `several_places`, their labels also stand within a sequence: see `ModelConfig.kernel_name`.
    """
    wanted = os.environ.get(VARIABLE)
    if not on_cpu(device):
        has_triton = TRITON in model.launches and model.has_gpu_kernels and not several_places
        return TRITON if has_triton and wanted != PLAIN else PLAIN
    prefers_compiled = wanted == COMPILED if wanted in (PLAIN, COMPILED) else model.compiled
    found = model.has_compiled and prefers_compiled and _numba_installed()
    if not found:
        return PLAIN
    return model.places_kernel if several_places else model.compiled_kernel


def kernel_of(trial: Trial, device: str = "cpu") -> str:
    """Return the kernel that a new trial would use on `device`, which may be on another machine."""
    if trial.precision != FLOAT32:
        return PLAIN  # kernels of our own are for single precision
    if trial.label_interval is None:
        return planned_kernel(trial.model, device)
    return planned_kernel(trial.model, device, several_places=True)


@functools.cache
def _numba_installed() -> bool:
    """Return whether numba is installed. It is not imported, because that takes longer than to plan."""
    return importlib.util.find_spec("numba") is not None


def is_captured(model: ModelConfig) -> bool:
    """Return whether a GPU records a step and replays it. It does not where a user's module is wrapped."""
    return not isinstance(model, ModuleConfig) and os.environ.get("ORCH_CAPTURE", "on") != "off"


def speedup(trial: Trial, size: int, device: str = "cpu") -> float:
    """Return the training steps per second of all trials in a pack of `size`, relative to one trial alone."""
    return size * step_seconds(trial, 1, device) / step_seconds(trial, size, device)


def step_seconds(trial: Trial, size: float = 1, device: str = "cpu", kernel: str | None = None) -> float:
    """Estimate the seconds of one training step of a pack of `size` trials.

    The size may be a mean, of a pack that shrinks. Trials of a model that does not pack take turns.
    """
    if not trial.model.packs and size > 1:
        return size * step_seconds(trial, 1, device, kernel)
    kernel = kernel or kernel_of(trial, device)
    num_samples = min(trial.batch_size, trial.train_examples or trial.batch_size)
    num_tokens = trial.task.num_tokens(trial.max_inputs)
    if on_cpu(device):
        return _on_core(trial, size, kernel, num_samples, num_tokens, training=True)
    busy, num_launches = _on_gpu(trial, size, A100, kernel, num_samples, num_tokens, training=True)
    # Trials of a pack share data as in the paper's grids, where every third has the same seed.
    draws = math.ceil(size / 3) * (5 + 4 * num_tokens) * A100.host_seconds_per_launch / STEPS_PER_BLOCK
    if is_captured(trial.model):
        return draws + A100.seconds_per_replay + busy
    return draws + max(busy, num_launches * A100.host_seconds_per_launch)


def device_seconds(trial: Trial, size: float, kernel: str) -> float:
    """Estimate the seconds that a step keeps a GPU busy, without the host."""
    return _on_gpu(trial, size, A100, kernel, trial.batch_size, trial.task.num_tokens(trial.max_inputs), True)[0]


def bytes_moved(trial: Trial, size: float, kernel: str) -> float:
    """Estimate the bytes that a GPU reads and writes in a training step."""
    num_tokens = trial.task.num_tokens(trial.max_inputs)
    return sum(_gpu_bytes(trial, size, kernel, trial.batch_size, num_tokens, training=True))


def validation_seconds(trial: Trial, size: float = 1, device: str = "cpu", kernel: str | None = None) -> float:
    """Estimate the seconds of one validation of a pack."""
    return _evaluation_seconds(trial, size, device, kernel, trial.validation_samples, trial.max_inputs)


def seconds_of_tests(trial: Trial, size: float = 1, device: str = "cpu", kernel: str | None = None) -> float:
    """Estimate the seconds of all tests at the end of a pack, and on a CPU of drawing their samples."""
    num_tokens = sum(trial.task.num_tokens(length) for length in trial.tested_lengths)
    drawn = trial.test_samples * num_tokens * SECONDS_PER_DRAWN_TOKEN if on_cpu(device) else 0.0
    return drawn + sum(
        _evaluation_seconds(trial, size, device, kernel, trial.test_samples, length) for length in trial.tested_lengths
    )


def pack_seconds(
    trial: Trial, size: float = 1, steps: float | None = None, device: str = "cpu", kernel: str | None = None
) -> float:
    """Estimate the seconds of a whole pack whose trials take `steps` (else their budget)."""
    steps = trial.steps if steps is None else steps
    return (
        steps * step_seconds(trial, size, device, kernel)
        + math.ceil(steps / trial.eval_every) * validation_seconds(trial, size, device, kernel)
        + seconds_of_tests(trial, size, device, kernel)
    )


def _evaluation_seconds(
    trial: Trial, size: float, device: str, kernel: str | None, num_samples: int, num_inputs: int
) -> float:
    kernel = kernel or kernel_of(trial, device)
    num_tokens = trial.task.num_tokens(num_inputs)
    if on_cpu(device):
        return _on_core(trial, size, kernel, num_samples, num_tokens, training=False)
    at_once = max(FEWEST_AT_ONCE, TOKENS_AT_ONCE // (size * num_tokens))
    num_parts = math.ceil(num_samples / at_once)
    busy, num_launches = _on_gpu(trial, size, A100, kernel, num_samples / num_parts, num_tokens, training=False)
    return num_parts * max(busy, num_launches * A100.host_seconds_per_launch)


def _on_core(trial: Trial, size: float, kernel: str, num_samples: int, num_tokens: int, training: bool) -> float:
    core, model, vocabulary = CORES[PLAIN if kernel == PLAIN else COMPILED], trial.model, trial.vocabulary
    launches = model.num_launches(vocabulary, num_samples, num_tokens, kernel) * core.per_launch
    num_places = num_samples * _more_places(trial, num_tokens)
    operations = model.forward_flops(vocabulary, num_samples, num_tokens)
    operations += num_places * model.reading_flops(vocabulary)
    entries = model.num_entries(vocabulary, num_samples, num_tokens, kernel)
    entries += num_places * model.reading_entries(vocabulary)
    if not training:
        return size * (
            num_samples * num_tokens * core.per_evaluated_position
            + operations * core.per_evaluated_operation
            + entries * core.per_evaluated_entry
        )
    per_operation = core.per_operation + core.per_operation_of_width_one / model.width
    num_trained = _num_trained(trial)
    spilled = max(0.0, size * (num_trained + entries) - core.cache)
    work = (
        model.passes * operations * per_operation
        + num_trained * core.per_parameter
        + model.passes / 3 * entries * core.per_entry
    )
    if model.launches_of(kernel, vocabulary, num_samples * num_tokens).for_each_trial:
        launches *= size
    return core.per_step + launches + size * work + spilled * core.per_spilled


def _on_gpu(
    trial: Trial, size: float, gpu: Gpu, kernel: str, num_samples: float, num_tokens: int, training: bool
) -> tuple[float, float]:
    """Return the seconds that the device is busy, and the number of kernels."""
    model, vocabulary, num_samples = trial.model, trial.vocabulary, math.ceil(num_samples)
    num_launches = model.num_launches(vocabulary, num_samples, num_tokens, kernel)
    num_places = num_samples * _more_places(trial, num_tokens)
    operations = size * model.forward_flops(vocabulary, num_samples, num_tokens)
    operations += size * num_places * model.reading_flops(vocabulary)
    moved, updated = _gpu_bytes(trial, size, kernel, num_samples, num_tokens, training)
    if training:
        operations *= model.passes
    else:
        num_launches *= EVALUATION_LAUNCHES
    seconds = (
        num_launches * gpu.seconds_per_launch
        + max(_transfer(gpu, moved, gpu.unevenness * moved / num_launches), operations / gpu.operations_per_second)
        + _transfer(gpu, updated, updated / 2)
    )
    return seconds, num_launches


def _gpu_bytes(
    trial: Trial, size: float, kernel: str, num_samples: int, num_tokens: int, training: bool
) -> tuple[float, float]:
    """Return the bytes that are moved at positions, and those that passes over the parameters move."""
    moved = trial.model.moved_numbers(trial.vocabulary, num_samples, num_tokens, kernel, training)
    places = num_samples * _more_places(trial, num_tokens)
    moved += places * trial.model.reading_entries(trial.vocabulary) * (4 if training else 1)
    passes = PASSES_OVER_PARAMETERS.get(kernel, PASSES_OVER_PARAMETERS[PLAIN]) if training else 0
    return size * BYTES * moved, size * BYTES * passes * _num_trained(trial)


def _more_places(trial: Trial, num_tokens: int) -> int:
    """Return the labels that a sample of so many tokens has within it, beside the one at its end."""
    if trial.label_interval is None:
        return 0
    return ((num_tokens - 3) // len(trial.task.slots) + 1) // trial.label_interval


def _transfer(gpu: Gpu, num_bytes: float, at_once: float) -> float:
    return num_bytes / (gpu.cached_bytes_per_second if at_once < gpu.cache else gpu.bytes_per_second)


def _num_trained(trial: Trial) -> int:
    return _count_trained(trial.model, trial.vocabulary)


@functools.lru_cache(maxsize=1 << 12)
def _count_trained(model: ModelConfig, vocabulary: Vocabulary) -> int:
    shapes = model.shapes(vocabulary).items()
    return sum(math.prod(shape) for name, shape in shapes if model.is_trained(name))
