"""Token tables: W x for the embedding x of every readable token, so that a sequence only looks its rows up."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from orch.models.autograd import apply_function

Scratch = dict[str, Tensor]
"""Memory for gradients that is used again at every step, because to allocate 64 MB takes longer than the arithmetic.
Its contents are valid only until the next backward pass."""


class OuterProducts(NamedTuple):
    """The gradient of a weight of shape (K, *O, D) as sums over tokens, of g_r times x_r.

    Adam can read it without writing it out, which for a full bilinear model would take longer than its recurrence.
    """

    g_KRO: Tensor
    x_KRD: Tensor

    def written_out(self) -> Tensor:
        """Return the gradient: (K, O, D)."""
        return torch.bmm(self.g_KRO.transpose(1, 2), self.x_KRD)


Gradient = Tensor | OuterProducts


def written_out(gradient: Gradient) -> Tensor:
    """Return a gradient as one tensor, which may have one axis for all outputs."""
    return gradient.written_out() if isinstance(gradient, OuterProducts) else gradient


def token_table(weight_KOD: Tensor, x_KRD: Tensor, scratch: Scratch | None = None) -> Tensor:
    """Multiply a weight of shape (K, *O, D) with each token's embedding: (K, R, *O)."""
    return torch.unflatten(flat_table(weight_KOD, x_KRD, scratch), -1, weight_KOD.shape[1:-1])


def flat_table(weight_KOD: Tensor, x_KRD: Tensor, scratch: Scratch | None = None) -> Tensor:
    """Return the table of `token_table` with one axis for all outputs: (K, R, O)."""
    return apply_function(_TokenTable, weight_KOD.flatten(1, -2), x_KRD, scratch)


class _TokenTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight_KOD: Tensor, x_KRD: Tensor, scratch: Scratch | None) -> Tensor:
        ctx.save_for_backward(weight_KOD, x_KRD)
        ctx.scratch = scratch
        return torch.bmm(x_KRD, weight_KOD.transpose(1, 2))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KRO: Tensor) -> tuple[Tensor | None, ...]:
        weight_KOD, x_KRD = ctx.saved_tensors
        g_weight = g_x = None
        if ctx.needs_input_grad[0]:
            buffer = None if ctx.scratch is None else ctx.scratch.get("weight")
            if buffer is None or buffer.shape != weight_KOD.shape:
                buffer = torch.empty_like(weight_KOD)
            if ctx.scratch is not None:
                ctx.scratch["weight"] = buffer
            g_weight = torch.bmm(g_KRO.transpose(1, 2), x_KRD, out=buffer)
        if ctx.needs_input_grad[1]:
            g_x = torch.bmm(g_KRO, weight_KOD)
        return g_weight, g_x, None


def sum_of_products(g_KRO: Tensor, x_KRD: Tensor) -> Tensor:
    """Sum the outer products of rows over all tokens: (K, O, D)."""
    return torch.bmm(g_KRO.transpose(1, 2), x_KRD)


def sum_of_rows(g_KRO: Tensor) -> Tensor:
    """Sum rows over all tokens: (K, O)."""
    return g_KRO.sum(1)
