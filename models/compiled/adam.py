"""Adam for the weight of a token table, in one pass over memory: its gradient is a sum of few outer products.

A gradient that is written out and read again would take more time than all the rest of a step of the full model.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.jit import inlined, jit
from orch.models.token_table import OuterProducts

_ROWS_AT_ONCE = 16
"""Rows of the weight whose factors are read at once, because they lie next to each other in a line of the cache."""


def update_stack(
    parameter: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: OuterProducts,
    learning_rates: Sequence[float],
    *,
    step: int,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> None:
    """Update a stacked parameter and its moments, with a learning rate for each trial."""
    g, x = (part.numpy() for part in gradient)
    num_tokens, width = x.shape[1:]
    states = [state.view(len(x), -1, width).numpy() for state in (parameter, first, second)]
    # torch's memory begins at a line of the cache, numpy's does not: reads across two lines take twice as long.
    eights = torch.empty(-(-num_tokens // 8) * 8, width).numpy()
    scratch = eights, np.empty((_ROWS_AT_ONCE, len(eights)), g.dtype), np.empty_like(x[0, 0])
    correction = np.float32(1 / math.sqrt(1 - beta2**step))
    constants = [np.float32(constant) for constant in (1 - beta1, beta2, 1 - beta2, epsilon)]
    for trial, rate in enumerate(learning_rates):
        rates = np.float32(rate / (1 - beta1**step)), correction
        _update(*(state[trial] for state in states), g[trial], x[trial], *scratch, *rates, *constants)


@jit
def _update(
    weight, first, second, g, x, eights, factors, row, rate, correction, new_first, old_second, new_second, epsilon
):  # fmt: skip
    # `eights` are the rows of x and rows of zeros up to a multiple of eight, which are added without a loop.
    for r in range(len(eights)):
        for d in range(len(row)):
            eights[r, d] = x[r, d] if r < len(x) else 0
    for o in range(len(weight)):
        place = o % _ROWS_AT_ONCE
        if place == 0:
            for r in range(len(eights)):
                for later in range(min(_ROWS_AT_ONCE, len(weight) - o)):
                    factors[later, r] = g[r, o + later] if r < len(g) else 0
        for start in range(0, len(x), 8):
            _outer_sum(factors[place, start : start + 8], eights[start : start + 8], start > 0, row)
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
