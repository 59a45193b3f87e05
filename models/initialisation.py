"""How initial parameters are drawn: from a generator, or as torch's own modules draw theirs."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from orch.models.wrapped_module import State

M = TypeVar("M", bound=nn.Module)


def uniform(shape: Sequence[int], bound: float, generator: torch.Generator) -> Tensor:
    """Draw numbers within plus or minus `bound`."""
    return torch.empty(*shape).uniform_(-bound, bound, generator=generator)


def normal(shape: Sequence[int], deviation: float, generator: torch.Generator) -> Tensor:
    """Draw normal numbers with mean 0."""
    return torch.empty(*shape).normal_(0, deviation, generator=generator)


def draw_like_torch(make: Callable[[], M], seed: int) -> M:
    """Make a module whose parameters torch draws from its global generator, which is seeded for this call only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def parameters_like_torch(make: Callable[[], nn.Module], generator: torch.Generator) -> State:
    """Return the parameters of a module that torch initialises, drawn with the seed of `generator`."""
    module = draw_like_torch(make, generator.initial_seed())
    return {name: parameter.detach() for name, parameter in module.named_parameters()}
