"""The precision of a trial: the type of its parameters, or the type of its products where that is a smaller one."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from orch.models.network import Network, State
from orch.sweeps.recipe import BFLOAT16, FLOAT64


def in_precision(state: State, precision: str) -> State:
    """Return parameters or states in the type that a precision keeps them in. They are drawn in float32."""
    if precision != FLOAT64:
        return state
    return {name: _double(tensor) for name, tensor in state.items()}


def _double(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def autocast(network: Network) -> AbstractContextManager[object]:
    """Return the context in which a network is called: with bfloat16, matrix products are computed in it."""
    if network.precision != BFLOAT16:
        return nullcontext()
    # Casts are not kept from one call to the next, because a recorded step would read those of the step it recorded.
    return torch.autocast(network[network.names[0]].device.type, torch.bfloat16, cache_enabled=False)
