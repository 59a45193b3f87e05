"""One row per readable token of whatever is linear in its embedding: W x for every x in the vocabulary, W once."""

import torch
from torch import Tensor

Scratch = dict[str, Tensor]
"""Memory for gradients that is used again at every step. A fresh 64 MB per step costs the system more time to hand out
than the arithmetic takes; but what is in it is valid only until the next backward pass."""


def token_table(weight_KOD: Tensor, x_KRD: Tensor, scratch: Scratch | None = None) -> Tensor:
    """(K, R, *O) from a weight of shape (K, *O, D): its last axis contracted with each token's embedding."""
    outputs = weight_KOD.shape[1:-1]
    table_KRO = _TokenTable.apply(weight_KOD.flatten(1, -2), x_KRD, scratch)
    return table_KRO.unflatten(-1, outputs)


class _TokenTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight_KOD, x_KRD, scratch):
        ctx.save_for_backward(weight_KOD, x_KRD)
        ctx.scratch = scratch
        return torch.bmm(x_KRD, weight_KOD.transpose(1, 2))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_KRO):
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
