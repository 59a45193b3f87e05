"""A typed way to call autograd functions, whose `apply` torch leaves without types."""

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor
from torch.autograd import Function


def apply_function(function: type[Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor."""
    return cast(Callable[..., Tensor], function.apply)(*inputs)
