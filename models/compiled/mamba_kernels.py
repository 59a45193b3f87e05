"""Compiled parts of Mamba's training step, for one trial. Its twin is `mamba/network.py`; `mamba_step.py` calls these.

A batch has one row per token of its samples, one sample after the other, and no padding: those of sample s begin at
`starts[s]`. `entered` is W_in norm(x), with u in its first I columns and z in the others. It has a row per token of the
vocabulary for the first block and one per row of the batch for the others: `source` says which row is whose.
"""

import math

import numpy as np

from orch.models.compiled.activation import exp2, sigmoid
from orch.models.compiled.jit import jit, jit_with_memory

_ONE, _MINUS_LOG2_E = np.float32(1), np.float32(-1.44269504)


@jit
def normalise_rows(x, weight, epsilon, normed, inverse, out):
    """Divide rows by their root mean square, and write them to `normed`; times the weight they are `out`."""
    for p in range(len(x)):
        total = x[p, 0] * x[p, 0]
        for m in range(1, x.shape[1]):
            total += x[p, m] * x[p, m]
        scale = x.dtype.type(1 / math.sqrt(total / x.shape[1] + epsilon))
        inverse[p] = scale
        for m in range(x.shape[1]):
            normed[p, m] = x[p, m] * scale
            out[p, m] = normed[p, m] * weight[m]


@jit
def normalise_rows_back(g, weight, normed, inverse, g_weight, g_x):
    """Write the gradient of x, and add that of the weight to `g_weight`."""
    for p in range(len(g)):
        along = g[p, 0] * weight[0] * normed[p, 0]
        for m in range(1, g.shape[1]):
            along += g[p, m] * weight[m] * normed[p, m]
        along = g.dtype.type(along / g.shape[1])
        for m in range(g.shape[1]):
            g_weight[m] += g[p, m] * normed[p, m]
            g_x[p, m] = (g[p, m] * weight[m] - normed[p, m] * along) * inverse[p]


@jit
def convolve(entered, source, starts, weight, bias, before, x):
    """Write the convolution of u along time to `before`, and silu of it to `x`. `weight` is by lag: (J, I)."""
    num_channels = len(bias)
    for s in range(len(starts) - 1):
        for p in range(starts[s], starts[s + 1]):
            row, to = before[p], x[p]
            for i in range(num_channels):
                row[i] = bias[i]
            for lag in range(min(len(weight), p - starts[s] + 1)):
                u, factor = entered[source[p - lag]], weight[lag]
                for i in range(num_channels):
                    row[i] += factor[i] * u[i]
            for i in range(num_channels):
                to[i] = row[i] * sigmoid(row[i])


@jit
def convolve_back(g, more_g, entered, source, starts, weight, before, g_before, g_entered, g_weight, g_bias):
    """Add to the gradients of u, the weight and the bias, given that of x in two parts. `g_before` is a row."""
    num_channels = len(g_bias)
    for s in range(len(starts) - 1):
        for p in range(starts[s], starts[s + 1]):
            g_p, more_g_p, before_p = g[p], more_g[p], before[p]
            for i in range(num_channels):
                share = sigmoid(before_p[i])
                g_before[i] = (g_p[i] + more_g_p[i]) * share * (_ONE + before_p[i] * (_ONE - share))
                g_bias[i] += g_before[i]
            for lag in range(min(len(weight), p - starts[s] + 1)):
                u, g_u = entered[source[p - lag]], g_entered[source[p - lag]]
                factor, g_factor = weight[lag], g_weight[lag]
                for i in range(num_channels):
                    g_factor[i] += g_before[i] * u[i]
                    g_u[i] += g_before[i] * factor[i]


@jit_with_memory
def scan(x, delta, rate, projected, rank, starts, only_ends, y):
    """Add C h to `y`, at every row, or at the end of every sample if `only_ends`. `rate` is A / log 2: (N, I)."""
    num_states, num_channels = rate.shape
    h = np.empty(num_channels, x.dtype)
    for s in range(len(starts) - 1):
        for n in range(num_states):
            for i in range(num_channels):
                h[i] = 0
            for p in range(starts[s], starts[s + 1]):
                b = projected[p, rank + n]
                for i in range(num_channels):
                    h[i] = exp2(rate[n, i] * delta[p, i]) * h[i] + b * (delta[p, i] * x[p, i])
                if not only_ends or p + 1 == starts[s + 1]:
                    c = projected[p, rank + num_states + n]
                    to = s if only_ends else p
                    for i in range(num_channels):
                        y[to, i] += c * h[i]


@jit_with_memory
def scan_back(
    g, x, delta, A, rate, projected, rank, starts, only_ends, longest, g_x, g_before, g_bias, g_A_log, g_projected
):  # fmt: skip
    """Add the gradient of x, and write those of B, C and A_log, and that of what softplus makes Δ from, and its sum.

    The states are computed again, which takes less time than to fetch them from memory. `longest` is the length of the
    longest sample.
    """
    num_states, num_channels = A.shape
    # Memory of its own, which the compiler knows to be apart from all other.
    factor, drive, g_drive, g_step = (
        np.empty((longest, num_channels), x.dtype),
        np.empty((longest, num_channels), x.dtype),
        np.empty((longest, num_channels), x.dtype),
        np.empty((longest, num_channels), x.dtype),
    )
    h = np.empty((longest + 1, num_channels), x.dtype)
    g_h, g_decay = np.empty(num_channels, x.dtype), np.empty(num_channels, x.dtype)
    for s in range(len(starts) - 1):
        start, length = starts[s], starts[s + 1] - starts[s]
        for t in range(length):
            for i in range(num_channels):
                drive[t, i] = delta[start + t, i] * x[start + t, i]
                g_drive[t, i] = 0
                g_step[t, i] = 0
        for n in range(num_states):
            for i in range(num_channels):
                h[0, i] = 0
                g_h[i] = 0
                g_decay[i] = 0
            for t in range(length):
                b = projected[start + t, rank + n]
                for i in range(num_channels):
                    factor[t, i] = exp2(rate[n, i] * delta[start + t, i])
                    h[t + 1, i] = factor[t, i] * h[t, i] + b * drive[t, i]
            for back in range(length):
                t = length - 1 - back
                p = start + t
                b, c = projected[p, rank + n], projected[p, rank + num_states + n]
                sum_b = sum_c = np.float32(0)
                if not only_ends or back == 0:
                    end = s if only_ends else p
                    for i in range(num_channels):
                        sum_c += g[end, i] * h[t + 1, i]
                        g_h[i] += c * g[end, i]
                for i in range(num_channels):
                    at_state = g_h[i]
                    sum_b += at_state * drive[t, i]
                    g_drive[t, i] += b * at_state
                    at_state *= factor[t, i]
                    g_h[i] = at_state
                    # The gradient at Δ_t A, times A: summed over N it is Δ's, and times Δ it is A_log's.
                    at_decay = at_state * h[t, i] * A[n, i]
                    g_step[t, i] += at_decay
                    g_decay[i] += at_decay * delta[p, i]
                g_projected[p, rank + n], g_projected[p, rank + num_states + n] = sum_b, sum_c
            for i in range(num_channels):
                g_A_log[n, i] += g_decay[i]
        for t in range(length):
            p = start + t
            for i in range(num_channels):
                g_x[p, i] += g_drive[t, i] * delta[p, i]
                g_delta = g_step[t, i] + g_drive[t, i] * x[p, i]
                g_before[p, i] = g_delta * (_ONE - exp2(_MINUS_LOG2_E * delta[p, i]))
                g_bias[i] += g_before[p, i]


@jit
def gate(y, x, D, entered, source, at, out):
    """Write (y + D x) silu(z) to `out`, for the rows `at` of the batch."""
    num_channels = len(D)
    for m in range(len(at)):
        x_m, y_m, z, to = x[at[m]], y[m], entered[source[at[m]]], out[m]
        for i in range(num_channels):
            to[i] = (y_m[i] + D[i] * x_m[i]) * z[num_channels + i] * sigmoid(z[num_channels + i])


@jit
def gate_back(g, y, x, D, entered, source, at, g_y, g_x, g_D, g_entered):
    """Write the gradients of y and, at the rows `at`, of x; add to those of D and z."""
    num_channels = len(D)
    for m in range(len(at)):
        x_m, y_m, z, g_m = x[at[m]], y[m], entered[source[at[m]]], g[m]
        to_y, to_x, to_z = g_y[m], g_x[at[m]], g_entered[source[at[m]]]
        for i in range(num_channels):
            share = sigmoid(z[num_channels + i])
            opened = z[num_channels + i] * share
            to_z[num_channels + i] += g_m[i] * (y_m[i] + D[i] * x_m[i]) * (share + opened * (_ONE - share))
            to_y[i] = g_m[i] * opened
            to_x[i] = to_y[i] * D[i]
            g_D[i] += to_y[i] * x_m[i]
