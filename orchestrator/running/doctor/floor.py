"""The floor of a training step: the least time that it takes on a device, at rates that are measured there.

- arithmetic: the operations on positions that are not padding, at the rate of a large matrix product;
- Adam: torch's fused kernel on as many parameters, which is bound by memory;
- states: two passes that write them and two that read them, at the rate of a copy;
- launches: the calls of a step that runs one operation at a time, at the rate of the smallest operation.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from orch.models.compiled.matmul import product
from orch.sweeps.trial import Trial
from orch.training.adam import StackedAdam

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Floor:
    """The seconds of a training step's parts."""

    arithmetic: float
    adam: float
    states: float
    launches: float = 0.0

    @property
    def seconds(self) -> float:
        return self.arithmetic + self.adam + self.states + self.launches


def now(device: str) -> float:
    """Return a time in seconds, after waiting for a GPU.

    On a CPU it is that of this process, which has one thread: other processes disturb it little.
    """
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def fastest(calls: Sequence[Callable[[], object]], turns: int, repeats: int = 1, device: str = "cpu") -> list[float]:
    """Return the shortest time of each call, in seconds. They take turns."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    for _ in range(turns):
        for place, call in enumerate(calls):
            started = now(device)
            for _ in range(repeats):
                call()
            best[place] = min(best[place], (now(device) - started) / repeats)
    return best


class DeviceRates:
    """The rates of a device, measured in about a second."""

    def __init__(self, device: str = "cpu"):
        self._device = device
        side = 1024 if device == "cpu" else 4096
        square, large = torch.randn(side, side, device=device), torch.randn(1 << 24, device=device)
        copy, small = torch.empty_like(large), torch.zeros(4, 4, device=device)
        multiply = product if device == "cpu" else torch.mm
        product_seconds, copy_seconds = fastest(
            [lambda: multiply(square, square), lambda: copy.copy_(large)], turns=10, device=device
        )
        (self.seconds_per_launch,) = fastest([lambda: small.add_(1)], turns=10, repeats=1000, device=device)
        self.flops_per_second = 2 * side**3 / product_seconds
        self.bytes_per_second = 2 * large.nbytes / copy_seconds

    def floor(self, trial: Trial, size: int, num_positions: int, num_launches: int = 0) -> Floor:
        """Return the floor of a step of `size` trials, whose batches have so many positions that are not padding."""
        model, vocabulary = trial.model, trial.vocabulary
        shapes = model.shapes(vocabulary)
        trained = [name for name in shapes if model.is_trained(name)]
        weight = torch.zeros(size, sum(torch.Size(shapes[name]).numel() for name in trained), device=self._device)
        adam = StackedAdam([weight], [1e-4] * size)
        (adam_seconds,) = fastest([lambda: adam.update([weight])], turns=5, repeats=3, device=self._device)
        mean_length = num_positions / (size * trial.batch_size)
        shorter, longer = (
            model.forward_flops(vocabulary, trial.batch_size, int(mean_length) + more) for more in (0, 1)
        )
        operations = 3 * size * (shorter + (mean_length % 1) * (longer - shorter))
        states = 4 * num_positions * model.width * _FLOAT_BYTES
        return Floor(
            arithmetic=operations / self.flops_per_second,
            adam=adam_seconds,
            states=states / self.bytes_per_second,
            launches=num_launches * self.seconds_per_launch,
        )
