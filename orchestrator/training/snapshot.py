"""A trial in training, and a copy of it from which it can continue elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from orch.models.kernel import PLAIN
from orch.models.network import State
from orch.sweeps.result import CurvePoint
from orch.sweeps.trial import Trial
from orch.tasks.sampling import derive_seed
from orch.training.precision import in_precision


@dataclass
class Member:
    """A trial in training: everything about it that is not a tensor."""

    trial: Trial
    curve: list[CurvePoint] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """The state from which one trial can continue elsewhere. Its data follow from the seed and the step."""

    trial: Trial
    step: int
    seconds: float
    curve: list[CurvePoint]
    parameters: State
    first: State
    """The optimiser's first states, Adam's first moments; empty before the first step."""
    second: State
    """The optimiser's second states, Adam's second moments; empty before the first step."""
    kernel: str = PLAIN
    """Implementation of the model's arithmetic that the trial began with: see `orch.models.kernel`."""
    losses: list[float] = field(default_factory=list)
    """The training losses since the last validation, which the next one averages."""

    def map_tensors(self, function: Callable[[str, str, Tensor], Tensor]) -> "Snapshot":
        """Return this snapshot with `function(field, name, tensor)` in the place of every tensor."""

        def mapped(kind: str) -> State:
            return {name: function(kind, name, tensor) for name, tensor in getattr(self, kind).items()}

        return replace(self, parameters=mapped("parameters"), first=mapped("first"), second=mapped("second"))


def initial_snapshot(trial: Trial, kernel: str) -> Snapshot:
    """Return a trial before its first step, with parameters drawn from its seed."""
    generator = torch.Generator().manual_seed(derive_seed("initialise", trial.init_seed))
    drawn = trial.model.network().fresh(trial.model, trial.vocabulary, generator)
    parameters = in_precision(drawn, trial.precision)
    return Snapshot(trial, step=0, seconds=0.0, curve=[], parameters=parameters, first={}, second={}, kernel=kernel)
