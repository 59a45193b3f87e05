"""Compiled selective scan of Mamba, over all samples of a stack of trials. Its twin is `_Scan` in `mamba/scan.py`.

    h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x_t,   y_t = C_t h_t,   from h = 0,   with A = -exp(A_log)

The N states of a channel do not depend on each other, so one of them is carried through all positions before the next,
and its memory stays in the smallest cache. Backward computes the states again instead of fetching them from memory.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.activation import exp2
from orch.models.compiled.jit import jit, jit_with_memory

Array = np.ndarray[Any, np.dtype[np.float32]]


def scan_forward(x_KTBI: Tensor, delta_KTBI: Tensor, A_log_KIN: Tensor, B_KTBN: Tensor, C_KTBN: Tensor) -> Tensor:
    """Return y, (K, T, B, I)."""
    x, delta, B, C = (_array(each) for each in (x_KTBI, delta_KTBI, B_KTBN, C_KTBN))
    rate_KNI = _decay(A_log_KIN) / np.float32(math.log(2))
    y = np.zeros_like(x)
    _forward(x, delta, rate_KNI, B, C, np.empty(x.shape[3], x.dtype), y)
    return torch.from_numpy(y)


def scan_backward(
    g_KTBI: Tensor, x_KTBI: Tensor, delta_KTBI: Tensor, A_log_KIN: Tensor, B_KTBN: Tensor, C_KTBN: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradients of x, Δ, A_log, B and C, given that of y."""
    g, x, delta, B, C = (_array(each) for each in (g_KTBI, x_KTBI, delta_KTBI, B_KTBN, C_KTBN))
    A_KNI = _decay(A_log_KIN)
    rate_KNI = A_KNI / np.float32(math.log(2))
    g_x, g_delta, g_A_log, g_B, g_C = (np.empty_like(each) for each in (x, delta, A_KNI, B, C))
    _backward(g, x, delta, A_KNI, rate_KNI, B, C, g_x, g_delta, g_A_log, g_B, g_C)
    g_A_log_KIN = torch.from_numpy(g_A_log).mT
    return (*map(torch.from_numpy, (g_x, g_delta)), g_A_log_KIN, *map(torch.from_numpy, (g_B, g_C)))


def _decay(A_log_KIN: Tensor) -> Array:
    """Return A, laid out like the states: (K, N, I)."""
    return _array(A_log_KIN.detach().exp().neg().mT)


def _array(x: Tensor) -> Array:
    array: Array = x.detach().contiguous().numpy()
    return array


@jit
def _forward(x, delta, rate, B, C, h, y):
    num_trials, num_positions, num_samples, num_channels = x.shape
    for k in range(num_trials):
        for s in range(num_samples):
            for n in range(rate.shape[1]):
                for i in range(num_channels):
                    h[i] = 0
                for t in range(num_positions):
                    b, c = B[k, t, s, n], C[k, t, s, n]
                    for i in range(num_channels):
                        step = delta[k, t, s, i]
                        h[i] = exp2(rate[k, n, i] * step) * h[i] + b * (step * x[k, t, s, i])
                        y[k, t, s, i] += c * h[i]


@jit_with_memory
def _backward(g, x, delta, A, rate, B, C, g_x, g_delta, g_A_log, g_B, g_C):
    num_trials, num_positions, num_samples, num_channels = x.shape
    # Memory of its own, which the compiler knows to be apart from all other.
    factor, drive, g_drive, g_step = (
        np.empty((num_positions, num_channels), x.dtype),
        np.empty((num_positions, num_channels), x.dtype),
        np.empty((num_positions, num_channels), x.dtype),
        np.empty((num_positions, num_channels), x.dtype),
    )
    h, g_h = np.empty((num_positions + 1, num_channels), x.dtype), np.empty(num_channels, x.dtype)
    for k in range(num_trials):
        for n in range(A.shape[1]):
            for i in range(num_channels):
                g_A_log[k, n, i] = 0
        for s in range(num_samples):
            for t in range(num_positions):
                for i in range(num_channels):
                    drive[t, i] = delta[k, t, s, i] * x[k, t, s, i]
                    g_drive[t, i] = 0
                    g_step[t, i] = 0
            for n in range(A.shape[1]):
                # Row t + 1 of `h` is the state after position t.
                for i in range(num_channels):
                    h[0, i] = 0
                    g_h[i] = 0
                for t in range(num_positions):
                    b = B[k, t, s, n]
                    for i in range(num_channels):
                        factor[t, i] = exp2(rate[k, n, i] * delta[k, t, s, i])
                        h[t + 1, i] = factor[t, i] * h[t, i] + b * drive[t, i]
                for back in range(num_positions):
                    t = num_positions - 1 - back
                    b, c = B[k, t, s, n], C[k, t, s, n]
                    sum_b = sum_c = np.float32(0)
                    for i in range(num_channels):
                        g_y = g[k, t, s, i]
                        at_state = g_h[i] + c * g_y
                        sum_c += g_y * h[t + 1, i]
                        sum_b += at_state * drive[t, i]
                        g_drive[t, i] += b * at_state
                        at_state *= factor[t, i]
                        g_h[i] = at_state
                        # The gradient at Δ_t A, times A: summed over N it is Δ's, and times Δ it is A_log's.
                        at_decay = at_state * h[t, i] * A[k, n, i]
                        g_step[t, i] += at_decay
                        g_A_log[k, n, i] += at_decay * delta[k, t, s, i]
                    g_B[k, t, s, n], g_C[k, t, s, n] = sum_b, sum_c
            for t in range(num_positions):
                for i in range(num_channels):
                    g_x[k, t, s, i] = g_drive[t, i] * delta[k, t, s, i]
                    g_delta[k, t, s, i] = g_step[t, i] + g_drive[t, i] * x[k, t, s, i]
