"""Compiled token tables: W x for the embedding x of every readable token, and its gradients.

Its twin is `models/token_table.py`. With few tokens the gradients are bound by memory, and kernels that take one pass
over W are faster than matrix products.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from orch.models.compiled.jit import jit
from orch.models.compiled.matmul import product
from orch.models.config import MOST_TOKENS_IN_ONE_PASS
from orch.models.token_table import Gradient, OuterProducts
from orch.models.vocabularies import Vocabularies


def token_table(weight_KOD: Tensor, x_KRD: Tensor, vocabularies: Vocabularies) -> Tensor:
    """Multiply a weight of shape (K, *O, D) with each token's embedding: (K, R, *O)."""
    rows = _products(lambda x_RD, weight_OD: product(x_RD, weight_OD.flatten(0, -2)))
    table = vocabularies.by_token(rows, x_KRD.detach(), weight_KOD.detach())
    return torch.unflatten(table, -1, weight_KOD.shape[1:-1])


def token_table_back(
    weight_KOD: Tensor, x_KRD: Tensor, vocabularies: Vocabularies, g_table: Tensor
) -> tuple[Gradient, Tensor]:
    """Return the gradients of the weight and of the embeddings, given that of the table."""
    # A copy, because Adam reads the gradient when it may have changed the embedding already.
    flat, x_KRD = weight_KOD.detach().flatten(1, -2), x_KRD.detach().clone(memory_format=torch.contiguous_format)
    g_KRO = g_table.flatten(2).contiguous()
    if g_KRO.shape[1] > MOST_TOKENS_IN_ONE_PASS:
        g_weight = vocabularies.over_tokens(_products(lambda g, x: product(g.T, x.T)), g_KRO, x_KRD)
        g_x = vocabularies.by_token(_products(lambda g, weight: product(g, weight.T)), g_KRO, flat)
        return g_weight.view_as(weight_KOD), g_x
    g_x = torch.zeros_like(x_KRD)
    _backward(flat.numpy(), g_KRO.numpy(), g_x.numpy())
    return OuterProducts(g_KRO, x_KRD), g_x


def _products(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function for stacks, trial by trial."""
    return lambda one_K, other_K: torch.stack([function(*trial) for trial in zip(one_K, other_K, strict=True)])


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
