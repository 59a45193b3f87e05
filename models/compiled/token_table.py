"""Compiled token tables: W x for the embedding x of every readable token, and its gradients.

Its twin is `models/token_table.py`. With few tokens the products are bound by memory, and one pass over W serves all
tokens; with many, torch's matrix product is faster.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from orch.models.compiled.jit import jit

MOST_TOKENS = 16


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


def token_table(weight_KOD: Tensor, x_KRD: Tensor) -> Tensor:
    """Multiply a weight of shape (K, *O, D) with each token's embedding: (K, R, *O)."""
    K, R, _ = x_KRD.shape
    outputs = weight_KOD.shape[1:-1]
    flat = weight_KOD.detach().flatten(1, -2)
    if R > MOST_TOKENS:
        return torch.unflatten(torch.bmm(x_KRD, flat.transpose(1, 2)), -1, outputs)
    table_KRO = torch.empty(K, R, flat.shape[1], dtype=flat.dtype)
    _forward(flat.numpy(), x_KRD.contiguous().numpy(), table_KRO.numpy())
    return torch.unflatten(table_KRO, -1, outputs)


def token_table_back(weight_KOD: Tensor, x_KRD: Tensor, g_table: Tensor) -> tuple[Gradient, Tensor]:
    """Return the gradients of the weight and of the embeddings, given that of the table."""
    # A copy, because Adam reads the gradient when it may have changed the embedding already.
    flat, x_KRD = weight_KOD.detach().flatten(1, -2), x_KRD.detach().clone(memory_format=torch.contiguous_format)
    g_KRO = g_table.flatten(2).contiguous()
    if g_KRO.shape[1] > MOST_TOKENS:
        return torch.bmm(g_KRO.transpose(1, 2), x_KRD).view_as(weight_KOD), torch.bmm(g_KRO, flat)
    g_x = torch.zeros_like(x_KRD)
    _backward(flat.numpy(), g_KRO.numpy(), g_x.numpy())
    return OuterProducts(g_KRO, x_KRD), g_x


@jit
def _forward(weight, x, table):
    by_four = x.shape[1] // 4 * 4
    for k in range(len(weight)):
        for o in range(weight.shape[1]):
            row = weight[k, o]
            for r in range(0, by_four, 4):
                x_0, x_1, x_2, x_3 = x[k, r], x[k, r + 1], x[k, r + 2], x[k, r + 3]
                sum_0 = sum_1 = sum_2 = sum_3 = row[0] * 0
                for d in range(len(row)):
                    sum_0 += row[d] * x_0[d]
                    sum_1 += row[d] * x_1[d]
                    sum_2 += row[d] * x_2[d]
                    sum_3 += row[d] * x_3[d]
                table[k, r, o], table[k, r + 1, o] = sum_0, sum_1
                table[k, r + 2, o], table[k, r + 3, o] = sum_2, sum_3
            for r in range(by_four, x.shape[1]):
                x_r, total = x[k, r], row[0] * 0
                for d in range(len(row)):
                    total += row[d] * x_r[d]
                table[k, r, o] = total


@jit
def _backward(weight, g, g_x):
    num_tokens = g.shape[1]
    by_four = weight.shape[1] // 4 * 4
    for k in range(len(weight)):
        for o in range(0, by_four, 4):
            row_0, row_1, row_2, row_3 = weight[k, o], weight[k, o + 1], weight[k, o + 2], weight[k, o + 3]
            for r in range(num_tokens):
                g_r, to = g[k, r], g_x[k, r]
                g_0, g_1, g_2, g_3 = g_r[o], g_r[o + 1], g_r[o + 2], g_r[o + 3]
                for d in range(len(to)):
                    to[d] += g_0 * row_0[d] + g_1 * row_1[d] + g_2 * row_2[d] + g_3 * row_3[d]
        for o in range(by_four, weight.shape[1]):
            row = weight[k, o]
            for r in range(num_tokens):
                g_ro, to = g[k, r, o], g_x[k, r]
                for d in range(len(to)):
                    to[d] += g_ro * row[d]


@jit
def outer_sum(g, x, out):
    """Write the sum over tokens of g_r x_r to `out`."""
    num_tokens = len(x)
    for d in range(len(out)):
        out[d] = 0
    by_four = num_tokens // 4 * 4
    for r in range(0, by_four, 4):
        x_0, x_1, x_2, x_3 = x[r], x[r + 1], x[r + 2], x[r + 3]
        g_0, g_1, g_2, g_3 = g[r], g[r + 1], g[r + 2], g[r + 3]
        for d in range(len(out)):
            out[d] += g_0 * x_0[d] + g_1 * x_1[d] + g_2 * x_2[d] + g_3 * x_3[d]
    for r in range(by_four, num_tokens):
        g_r, x_r = g[r], x[r]
        for d in range(len(out)):
            out[d] += g_r * x_r[d]
