"""Everything private to torch that training uses. `tests/training/test_torch_compat.py` says what breaks without it."""

import torch
from torch import Tensor


def fused_adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    steps: list[Tensor],
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> None:
    """Update parameters and moments in place, with the kernel of `torch.optim.Adam(fused=True)`.

    The public optimiser cannot give each trial of a stack its own learning rate in one pass over memory.
    """
    torch._fused_adam_(
        parameters,
        gradients,
        first,
        second,
        [],
        steps,
        lr=learning_rate,
        beta1=beta1,
        beta2=beta2,
        weight_decay=0.0,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )
