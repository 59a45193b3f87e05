"""Operations of torch that launch kernels."""

from collections.abc import Callable
from typing import Any, cast

import torch

_LIBRARY = torch.library.Library("orch", "FRAGMENT")  # type: ignore[no-untyped-call]


def operation(fake: Callable[..., Any], changes: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Make a function an operation of torch, `torch.ops.orch.<name>`, which autograd does not see through.

    `fake` takes the same arguments and returns tensors of the right shapes with any contents; it stands in for the
    function where tensors have no data. `changes` are the names of arguments that are changed in place. The function
    returns new tensors, or nothing.
    """

    # Not torch.library.custom_op, whose first call imports torch's compiler: three seconds in every worker.
    def register(function: Callable[..., Any]) -> Any:
        name = function.__name__
        _LIBRARY.define(name + torch.library.infer_schema(function, mutates_args=changes))  # type: ignore[no-untyped-call]
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"orch::{name}", fake, lib=_LIBRARY)
        return cast(Any, getattr(torch.ops.orch, name)).default

    return register
