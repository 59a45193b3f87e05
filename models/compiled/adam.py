"""Adam for the weight of a token table, in one pass over memory: its gradient is a sum of few outer products.

A gradient that is written out and read again would take more time than all the rest of a step of the full model.
"""

import math

import numpy as np
from torch import Tensor

from orch.models.compiled.jit import jit
from orch.models.compiled.token_table import OuterProducts, outer_sum


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
    x = gradient.x_KRD[trial].numpy()
    _update(
        *(state.view(-1, x.shape[1]).numpy() for state in (parameter, first, second)),
        *(gradient.g_KRO[trial].numpy(), x, np.empty_like(x[0]), np.float32(learning_rate / (1 - beta1**step))),
        *(np.float32(1 / math.sqrt(1 - beta2**step)), np.float32(1 - beta1), np.float32(beta2)),
        *(np.float32(1 - beta2), np.float32(epsilon)),
    )


@jit
def _update(weight, first, second, g, x, row, rate, correction, new_first, old_second, new_second, epsilon):
    for o in range(len(weight)):
        outer_sum(g[:, o], x, row)
        w, m, v = weight[o], first[o], second[o]
        for d in range(len(row)):
            m[d] += new_first * (row[d] - m[d])
        for d in range(len(row)):
            v[d] = old_second * v[d] + new_second * row[d] * row[d]
        for d in range(len(row)):
            w[d] -= rate * m[d] / (math.sqrt(v[d]) * correction + epsilon)
