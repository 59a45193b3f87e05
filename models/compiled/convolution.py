"""Compiled causal convolution of one sample, with silu. Its twin is `convolve` in `mamba/scan.py`.

A weight is by lag: (J, G). Only the first G channels of the input are convolved. Loops begin at 0, on views: the
compiler cannot tell whether another beginning is negative, which would count from the end, and makes slow code.
"""

import numpy as np

from orch.models.compiled.activation import sigmoid
from orch.models.compiled.jit import inlined

_ONE = np.float32(1)


@inlined
def convolve(x, weight, num_tokens, first_read, width, before, z):
    """Write the convolution to `before`, and silu of it to `z`.

    The first `width` channels, those of queries, are left out before `first_read`, because they are not needed.
    """
    for t in range(num_tokens):
        first = 0 if t >= first_read else width
        row, to = before[t, first:], z[t, first:]
        latest, factor = x[t, first:], weight[0, first:]
        for g in range(len(row)):
            row[g] = factor[g] * latest[g]
        for lag in range(1, min(len(weight), t + 1)):
            earlier, factor = x[t - lag, first:], weight[lag, first:]
            for g in range(len(row)):
                row[g] += factor[g] * earlier[g]
        for g in range(len(row)):
            to[g] = row[g] * sigmoid(row[g])


@inlined
def convolve_back(g_z, x, weight, num_tokens, first_read, width, before, g_x, g_weight):
    """Add to the gradients of x and of the weight; `g_z` is overwritten."""
    for t in range(num_tokens):
        first = 0 if t >= first_read else width
        row, g_row = before[t, first:], g_z[t, first:]
        for g in range(len(row)):
            share = sigmoid(row[g])
            g_row[g] *= share * (_ONE + row[g] * (_ONE - share))
        for lag in range(min(len(weight), t + 1)):
            earlier, g_earlier = x[t - lag, first:], g_x[t - lag, first:]
            factor, g_factor = weight[lag, first:], g_weight[lag, first:]
            for g in range(len(row)):
                g_factor[g] += g_row[g] * earlier[g]
                g_earlier[g] += g_row[g] * factor[g]
