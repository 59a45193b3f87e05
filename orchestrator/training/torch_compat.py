"""Everything private to torch that training uses. `tests/training/test_torch_compat.py` says what breaks without it.

The public optimisers cannot give each trial of a stack its own learning rate in one pass over memory. A learning rate
is a number, or a tensor on the device that the kernel reads.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def fused_adam_step(*tensors: list[Tensor], **amounts: Any) -> None:
    """Update parameters and moments in place, with the kernel of `torch.optim.Adam(fused=True)`."""
    _adam(torch._fused_adam_, *tensors, **amounts)


def fused_adamw_step(*tensors: list[Tensor], **amounts: Any) -> None:
    """Update parameters and moments in place, with the kernel of `torch.optim.AdamW(fused=True)`."""
    _adam(torch._fused_adamw_, *tensors, **amounts)


def _adam(
    kernel: Callable[..., None],
    parameters: list[Tensor],
    gradients: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    steps: list[Tensor],
    *,
    learning_rate: float | Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float = 0.0,
) -> None:
    kernel(
        parameters,
        gradients,
        first,
        second,
        [],
        steps,
        lr=learning_rate,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )


def fused_sgd_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    momenta: list[Tensor],
    *,
    learning_rate: float | Tensor,
    momentum: float,
    weight_decay: float,
) -> None:
    """Update parameters and momenta in place, with the kernel of `torch.optim.SGD(fused=True)`.

    Momenta begin at zero, from which the first update makes them the gradient, as the public optimiser does.
    """
    torch._fused_sgd_(
        parameters,
        gradients,
        momenta,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=learning_rate,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )
