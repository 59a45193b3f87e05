"""A typed way to call autograd functions, whose `apply` torch leaves without types."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function


def apply_function(function: type[Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor.

    Under autocast it computes in single precision: its backward pass is written for the types of its forward pass.
    """
    apply = cast(Callable[..., Tensor], function.apply)
    device = next((each.device.type for each in inputs if isinstance(each, Tensor)), "cpu")
    if not torch.is_autocast_enabled(device):
        return apply(*inputs)
    with torch.autocast(device, enabled=False):
        return apply(*(_single(each) for each in inputs))


def _single(given: Any) -> Any:
    return given.float() if isinstance(given, Tensor) and given.is_floating_point() else given
