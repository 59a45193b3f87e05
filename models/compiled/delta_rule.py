"""Compiled core of the delta rule's mixers: convolution, silu, norms of queries and keys, and the delta rule itself.

Its twin is `scan` in `delta_net/network.py`; the equation stands in `recurrence/delta_rule.py`. Samples take turns, so
that the numbers of one stay in the smallest cache, and each is read only up to its [EOI]. The writes u of a head solve
a triangular system, as in the plain form, and no state is kept. Backward computes everything again instead of fetching
it from memory.

Of the E channels of an input (K, T, B, E) the first G are convolved: H of queries, then n H of keys and n H of values,
write by write and head by head. Then follow n a values of β, and a logarithms of decays if the state decays.
"""

import math

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.activation import exp2, sigmoid
from orch.models.compiled.jit import inlined, jit_with_memory

_LOG2_E, _LN2 = np.float32(1 / math.log(2)), np.float32(math.log(2))
_ONE, _ZERO = np.float32(1), np.float32(0)


def delta_forward(
    x_KTBE: Tensor, weight_KG1J: Tensor, end_KB: Tensor, heads: int, num_writes: int, epsilon: float, only_end: bool
) -> Tensor:
    """Return what every token reads, (K, T, B, H), or what [EOI] reads if `only_end`: (K, 1, B, H).

    `epsilon` is the smallest norm that a query or a key is divided by.
    """
    x, weight, end = (each.detach().contiguous().numpy() for each in (x_KTBE, _by_lag(weight_KG1J), end_KB))
    K, T, B, _ = x.shape
    o = np.zeros((K, 1 if only_end else T, B, weight.shape[2] // (1 + 2 * num_writes)), x.dtype)
    _forward(x, weight, end, heads, num_writes, np.float32(epsilon), only_end, o)
    return torch.from_numpy(o)


def delta_backward(
    g: Tensor,
    x_KTBE: Tensor,
    weight_KG1J: Tensor,
    end_KB: Tensor,
    heads: int,
    num_writes: int,
    epsilon: float,
    only_end: bool,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the input and of the convolution, given that of what is read."""
    tensors = g, x_KTBE, _by_lag(weight_KG1J), end_KB
    g_o, x, weight, end = (each.detach().contiguous().numpy() for each in tensors)
    g_x, g_weight = np.zeros_like(x), np.zeros_like(weight)
    _backward(g_o, x, weight, end, heads, num_writes, np.float32(epsilon), only_end, g_x, g_weight)
    return torch.from_numpy(g_x), torch.from_numpy(g_weight).mT.flip(2)[:, :, None]


def _by_lag(weight_KG1J: Tensor) -> Tensor:
    """Return the convolution from the latest token to the earliest: (K, J, G)."""
    return weight_KG1J[:, :, 0].flip(2).mT


@inlined
def _dot(x, y, d):
    """Return the product of two vectors. The usual sizes are known to the compiler, which then needs no loop."""
    total = _ZERO
    if d == 16:
        for c in range(16):
            total += x[c] * y[c]
    elif d == 32:
        for c in range(32):
            total += x[c] * y[c]
    elif d == 64:
        for c in range(64):
            total += x[c] * y[c]
    else:
        for c in range(d):
            total += x[c] * y[c]
    return total


@inlined
def _add(to, factor, x, d):
    """Add a multiple of a vector to another."""
    if d == 16:
        for c in range(16):
            to[c] += factor * x[c]
    elif d == 32:
        for c in range(32):
            to[c] += factor * x[c]
    elif d == 64:
        for c in range(64):
            to[c] += factor * x[c]
    else:
        for c in range(d):
            to[c] += factor * x[c]


@inlined
def _convolve(x, weight, num_tokens, first_read, width, before, z):
    """Write the convolution along time to `before`, and silu of it to `z`. No query is needed before `first_read`."""
    for t in range(num_tokens):
        first = 0 if t >= first_read else width
        row, to = before[t], z[t]
        for g in range(first, weight.shape[1]):
            row[g] = weight[0, g] * x[t, g]
        for lag in range(1, min(len(weight), t + 1)):
            for g in range(first, weight.shape[1]):
                row[g] += weight[lag, g] * x[t - lag, g]
        for g in range(first, weight.shape[1]):
            to[g] = row[g] * sigmoid(row[g])


@inlined
def _convolve_back(g_z, x, weight, num_tokens, first_read, width, before, g_x, g_weight):
    """Add to the gradients of x and of the weight; `g_z` is overwritten."""
    for t in range(num_tokens):
        first = 0 if t >= first_read else width
        row, g_row = before[t], g_z[t]
        for g in range(first, weight.shape[1]):
            share = sigmoid(row[g])
            g_row[g] *= share * (_ONE + row[g] * (_ONE - share))
        for lag in range(min(len(weight), t + 1)):
            for g in range(first, weight.shape[1]):
                g_weight[lag, g] += g_row[g] * x[t - lag, g]
                g_x[t - lag, g] += g_row[g] * weight[lag, g]


@inlined
def _unit(z, d, epsilon, to):
    """Write a vector of norm 1 to `to`, and return what it was multiplied with."""
    inverse = _ONE / max(np.float32(math.sqrt(_dot(z, z, d))), epsilon)
    for c in range(d):
        to[c] = z[c] * inverse
    return inverse


@inlined
def _unit_back(g, unit, inverse, epsilon, d, to):
    """Write the gradient of the vector that `_unit` was given."""
    along = _dot(g, unit, d) if inverse * epsilon < _ONE else _ZERO
    for c in range(d):
        to[c] = (g[c] - along * unit[c]) * inverse


@inlined
def _solve(x, z, num_tokens, first_read, head, heads, n, num_channels, epsilon, vectors, numbers, tables):
    """Fill in a head's vectors, its writes u, their overlaps (without β), and how much each token reads of each."""
    (q, k, v, u), (q_inverse, k_inverse, beta, since), (overlap, reads) = vectors, numbers, tables
    d = q.shape[1]
    width = d * heads
    decays = x.shape[1] > num_channels + n * heads
    total = _ZERO
    for t in range(num_tokens):
        if t >= first_read:
            q_inverse[t] = _unit(z[t, head * d :], d, epsilon, q[t])
        if decays:
            total += x[t, num_channels + n * heads + head] * _LOG2_E
        for i in range(n):
            w, place = t * n + i, width + i * width + head * d
            k_inverse[w] = _unit(z[t, place:], d, epsilon, k[w])
            value = z[t, place + n * width :]
            for c in range(d):
                v[w, c] = value[c]
                u[w, c] = value[c]
            beta[w] = x[t, num_channels + i * heads + head]
            since[w] = total
    for w in range(num_tokens * n):
        for j in range(w):
            overlap[w, j] = _dot(k[w], k[j], d)
            if decays:
                overlap[w, j] *= exp2(since[w] - since[j])
            _add(u[w], -overlap[w, j], u[j], d)
        for c in range(d):
            u[w, c] *= beta[w]
    for t in range(first_read, num_tokens):
        for j in range((t + 1) * n):
            reads[t, j] = _dot(q[t], k[j], d)
            if decays:
                reads[t, j] *= exp2(since[t * n] - since[j])


@jit_with_memory
def _forward(x, weight, end, heads, n, epsilon, only_end, o):
    num_trials, longest, num_samples, _ = x.shape
    num_channels, width = weight.shape[2], o.shape[3]
    d, num_writes = width // heads, longest * n
    row = np.empty((longest, x.shape[3]), x.dtype)
    before, z = np.empty((longest, num_channels), x.dtype), np.empty((longest, num_channels), x.dtype)
    q, k, v, u = (
        np.empty((longest, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
    )
    q_inverse, k_inverse = np.empty(longest, x.dtype), np.empty(num_writes, x.dtype)
    beta, since = np.empty(num_writes, x.dtype), np.empty(num_writes, x.dtype)
    overlap, reads = np.empty((num_writes, num_writes), x.dtype), np.empty((longest, num_writes), x.dtype)
    vectors, numbers, tables = (q, k, v, u), (q_inverse, k_inverse, beta, since), (overlap, reads)
    for trial in range(num_trials):
        for s in range(num_samples):
            num_tokens = end[trial, s] + 1
            first_read = num_tokens - 1 if only_end else 0
            for t in range(num_tokens):
                for e in range(x.shape[3]):
                    row[t, e] = x[trial, t, s, e]
            _convolve(row, weight[trial], num_tokens, first_read, width, before, z)
            for head in range(heads):
                _solve(row, z, num_tokens, first_read, head, heads, n, num_channels, epsilon, vectors, numbers, tables)
                for t in range(first_read, num_tokens):
                    to = o[trial, t - first_read if only_end else t, s, head * d :]
                    for j in range((t + 1) * n):
                        _add(to, reads[t, j], u[j], d)


@jit_with_memory
def _backward(g_o, x, weight, end, heads, n, epsilon, only_end, g_x, g_weight):
    num_trials, longest, num_samples, num_inputs = x.shape
    num_channels, width = weight.shape[2], g_o.shape[3]
    d, num_writes = width // heads, longest * n
    decays = num_inputs > num_channels + n * heads
    row, g_row = np.empty((longest, num_inputs), x.dtype), np.empty((longest, num_inputs), x.dtype)
    before, z, g_z = (
        np.empty((longest, num_channels), x.dtype),
        np.empty((longest, num_channels), x.dtype),
        np.empty((longest, num_channels), x.dtype),
    )
    q, g_q = np.empty((longest, d), x.dtype), np.empty((longest, d), x.dtype)
    k, v, u, g_k, g_u = (
        np.empty((num_writes, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
        np.empty((num_writes, d), x.dtype),
    )
    q_inverse, k_inverse = np.empty(longest, x.dtype), np.empty(num_writes, x.dtype)
    beta, since, g_since = np.empty(num_writes, x.dtype), np.empty(num_writes, x.dtype), np.empty(num_writes, x.dtype)
    overlap, reads = np.empty((num_writes, num_writes), x.dtype), np.empty((longest, num_writes), x.dtype)
    vectors, numbers, tables = (q, k, v, u), (q_inverse, k_inverse, beta, since), (overlap, reads)
    for trial in range(num_trials):
        for s in range(num_samples):
            num_tokens = end[trial, s] + 1
            first_read = num_tokens - 1 if only_end else 0
            for t in range(num_tokens):
                for e in range(num_inputs):
                    row[t, e] = x[trial, t, s, e]
                    g_row[t, e] = 0
            _convolve(row, weight[trial], num_tokens, first_read, width, before, z)
            for head in range(heads):
                _solve(row, z, num_tokens, first_read, head, heads, n, num_channels, epsilon, vectors, numbers, tables)
                for w in range(num_tokens * n):
                    g_since[w] = 0
                    for c in range(d):
                        g_k[w, c] = 0
                        g_u[w, c] = 0
                for t in range(first_read, num_tokens):
                    g_read = g_o[trial, t - first_read if only_end else t, s, head * d :]
                    for c in range(d):
                        g_q[t, c] = 0
                    for j in range((t + 1) * n):
                        _add(g_u[j], reads[t, j], g_read, d)
                        g = _dot(g_read, u[j], d)
                        if decays:
                            g_since[t * n] += g * reads[t, j]
                            g_since[j] -= g * reads[t, j]
                            g *= exp2(since[t * n] - since[j])
                        _add(g_q[t], g, k[j], d)
                        _add(g_k[j], g, q[t], d)
                    _unit_back(g_q[t], q[t], q_inverse[t], epsilon, d, g_z[t, head * d :])
                # From the last write to the first: the gradient at u_w is complete when the later ones are done.
                for back in range(num_tokens * n):
                    w = num_tokens * n - 1 - back
                    g_beta = _dot(g_u[w], v[w], d)
                    for j in range(w):
                        _add(g_u[j], -beta[w] * overlap[w, j], g_u[w], d)
                        g = -_dot(g_u[w], u[j], d)
                        g_beta += g * overlap[w, j]
                        g *= beta[w]
                        if decays:
                            g_since[w] += g * overlap[w, j]
                            g_since[j] -= g * overlap[w, j]
                            g *= exp2(since[w] - since[j])
                        _add(g_k[w], g, k[j], d)
                        _add(g_k[j], g, k[w], d)
                    t, i = w // n, w % n
                    place = width + i * width + head * d
                    _unit_back(g_k[w], k[w], k_inverse[w], epsilon, d, g_z[t, place:])
                    g_value = g_z[t, place + n * width :]
                    for c in range(d):
                        g_value[c] = beta[w] * g_u[w, c]
                    g_row[t, num_channels + i * heads + head] = g_beta
                if decays:
                    total = _ZERO
                    for back in range(num_tokens):
                        t = num_tokens - 1 - back
                        for i in range(n):
                            total += g_since[t * n + i]
                        g_row[t, num_channels + n * heads + head] = total
            _convolve_back(g_z, row, weight[trial], num_tokens, first_read, width, before, g_row, g_weight[trial])
            for t in range(num_tokens):
                for e in range(num_inputs):
                    g_x[trial, t, s, e] = g_row[t, e]
