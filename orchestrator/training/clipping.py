"""Clipping gradients by their norm, which is that of one trial and never of a stack.

The arithmetic is that of `torch.nn.utils.clip_grad_norm_` on the parameters of the trial alone.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from orch.models.token_table import Gradient, OuterProducts

_EPSILON = 1e-6
"""What `clip_grad_norm_` adds to a norm before it divides by it."""


def clip_by_norm(
    gradients: Sequence[Gradient], of_trials: Sequence[Sequence[Gradient]], largest_norms: Sequence[float]
) -> list[Gradient]:
    """Return stacked gradients, each trial's scaled down if its norm exceeds the trial's largest.

    `of_trials` has each trial's own part of every gradient, without padding.
    """
    pairs = zip(of_trials, largest_norms, strict=True)
    scale_K = torch.stack([(largest / (total_norm(own) + _EPSILON)).clamp(max=1.0) for own, largest in pairs])
    return [_scaled(gradient, scale_K) for gradient in gradients]


def total_norm(gradients: Sequence[Gradient]) -> Tensor:
    """Return the norm of all gradients of one trial together."""
    # Sorted, because a resumed trial has its parameters in another order, in which the sum would round differently.
    norms = torch.stack([_norm(gradient) for gradient in gradients]).sort().values
    norm: Tensor = torch.linalg.vector_norm(norms)
    return norm


def _norm(gradient: Gradient) -> Tensor:
    if isinstance(gradient, Tensor):
        # A sum in the order of memory, which may differ between a stack and a trial alone.
        norm: Tensor = torch.linalg.vector_norm(gradient.contiguous())
        return norm
    # |sum of g_r x_r'|^2 is the sum over r and s of (g_r g_s)(x_r x_s): the outer products are not written out. In
    # double precision, because terms may cancel.
    g_RO, x_RD = (part.double() for part in gradient)
    square: Tensor = ((g_RO @ g_RO.T) * (x_RD @ x_RD.T)).sum().clamp(min=0)
    return square.sqrt().to(gradient.x_KRD.dtype)


def _scaled(gradient: Gradient, scale_K: Tensor) -> Gradient:
    if isinstance(gradient, OuterProducts):
        return gradient._replace(g_KRO=_scaled_tensor(gradient.g_KRO, scale_K))
    return _scaled_tensor(gradient, scale_K)


def _scaled_tensor(stack: Tensor, scale_K: Tensor) -> Tensor:
    return stack * scale_K.to(stack.dtype).view(-1, *[1] * (stack.dim() - 1))
