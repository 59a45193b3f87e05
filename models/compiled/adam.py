"""Adam for the weight of a token table, in one pass over memory: its gradient is a sum of few outer products.

A gradient that is written out and read again would take more time than all the rest of a step of the full model.
"""

import math

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.jit import inlined, jit
from orch.models.token_table import OuterProducts


def update_trial(
    parameter: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: OuterProducts,
    trial: int,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> None:
    """Update one trial's parameter and its moments, which are given without the trial axis."""
    g, x = (_in_eights(part[trial]).numpy() for part in (gradient.g_KRO, gradient.x_KRD))
    _update(
        *(state.view(-1, x.shape[1]).numpy() for state in (parameter, first, second)),
        *(np.ascontiguousarray(g.T), x, np.empty_like(x[0])),
        *map(np.float32, (learning_rate / (1 - beta1**step), 1 / math.sqrt(1 - beta2**step))),
        *map(np.float32, (1 - beta1, beta2, 1 - beta2, epsilon)),
    )


def _in_eights(rows: Tensor) -> Tensor:
    """Append rows of zeros up to a multiple of eight, which the compiler can add without a loop."""
    return torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % 8))


@jit
def _update(weight, first, second, g, x, row, rate, correction, new_first, old_second, new_second, epsilon):
    for o in range(len(weight)):
        for start in range(0, len(x), 8):
            _outer_sum(g[o, start : start + 8], x[start : start + 8], start > 0, row)
        w, m, v = weight[o], first[o], second[o]
        for d in range(len(row)):
            mean = m[d] + new_first * (row[d] - m[d])
            square = old_second * v[d] + new_second * row[d] * row[d]
            m[d] = mean
            v[d] = square
            w[d] -= rate * mean / (math.sqrt(square) * correction + epsilon)


@inlined
def _outer_sum(g, x, add, out):
    """Write the sum of eight rows of `x` times numbers to `out`, or add it."""
    g_0, g_1, g_2, g_3, g_4, g_5, g_6, g_7 = g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]
    if not add:
        for d in range(len(out)):
            out[d] = 0
    for d in range(len(out)):
        out[d] = (
            out[d]
            + (g_0 * x[0, d] + g_1 * x[1, d] + g_2 * x[2, d] + g_3 * x[3, d])
            + (g_4 * x[4, d] + g_5 * x[5, d] + g_6 * x[6, d] + g_7 * x[7, d])
        )
