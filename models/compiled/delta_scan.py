"""Compiled recurrence of the delta rule's mixers, in the form of small matrix products.

Its twin is `scan` in `delta_net/network.py`; the equation stands in `recurrence/delta_rule.py`. For a head of a sample,
with its keys as the rows of K, its queries as those of Q and D the decay between two writes:

    (I + β A) U = β V,  A = K Kᵀ ∘ D below the diagonal;    O = R U,  R = Q Kᵀ ∘ D where the write is not later

Backward computes everything again instead of fetching it from memory. Rows are laid out as in `residual_kernels.py`.
"""

import math

import numpy as np

from orch.models.compiled.activation import exp2
from orch.models.compiled.delta_rule import convolve, convolve_back, unit, unit_back
from orch.models.compiled.jit import inlined, jit_with_memory
from orch.models.compiled.tile import LANES, add_small_product

_LOG2_E, _ONE, _ZERO = np.float32(1 / math.log(2)), np.float32(1), np.float32(0)


@inlined
def _padded(size):
    return (size + LANES - 1) // LANES * LANES


@inlined
def _clear(x, num_rows):
    for row in range(num_rows):
        for c in range(x.shape[1]):
            x[row, c] = 0


@inlined
def _transpose(x, num_rows, to):
    for row in range(num_rows):
        for c in range(x.shape[1]):
            to[c, row] = x[row, c]


@inlined
def _gather(channels, source, start, num_tokens, row):
    for t in range(num_tokens):
        for e in range(channels.shape[1]):
            row[t, e] = channels[source[start + t], e]


@inlined
def _by_lag(weight, to):
    """Write a convolution from the latest token to the earliest: (J, G)."""
    for lag in range(len(to)):
        for g in range(to.shape[1]):
            to[lag, g] = weight[g, len(to) - 1 - lag]


@inlined
def _solve(row, z, num_tokens, first_read, head, heads, n, num_convolved, d, epsilon, vectors, numbers, tables):
    """Fill in a head's vectors, the errors V - A U, the writes U, and the matrices A and R."""
    q, k, error, u, k_columns = vectors
    q_inverse, k_inverse, beta, since = numbers
    overlap, reads = tables
    width, num_writes, num_reads = d * heads, num_tokens * n, num_tokens - first_read
    decays = row.shape[1] > num_convolved + n * heads
    total = _ZERO
    for t in range(num_tokens):
        if t >= first_read:
            q_inverse[t - first_read] = unit(z[t, head * d :], d, epsilon, q[t - first_read])
        if decays:
            total += row[t, num_convolved + n * heads + head] * _LOG2_E
        for i in range(n):
            w, place = t * n + i, width + i * width + head * d
            k_inverse[w] = unit(z[t, place:], d, epsilon, k[w])
            beta[w] = row[t, num_convolved + i * heads + head]
            since[w] = total
    _transpose(k, num_writes, k_columns)
    size, depth = overlap.shape[1], k.shape[1]
    _clear(overlap, num_writes)
    _clear(reads, num_reads)
    columns = _padded(num_writes)
    add_small_product(k, 0, depth, 1, k_columns, 0, size, overlap, 0, size, num_writes, d, columns)
    add_small_product(q, 0, depth, 1, k_columns, 0, size, reads, 0, size, num_reads, d, columns)
    if decays:
        for w in range(num_writes):
            for j in range(w):
                overlap[w, j] *= exp2(since[w] - since[j])
        for r in range(num_reads):
            last = (first_read + r) * n
            for j in range(last + n):
                reads[r, j] *= exp2(since[last] - since[j])
    for r in range(num_reads):
        for j in range((first_read + r + 1) * n, num_writes):
            reads[r, j] = 0
    for w in range(num_writes):
        value, read = z[w // n, width + (n + w % n) * width + head * d :], error[w]
        for c in range(depth):
            read[c] = 0
        add_small_product(overlap, w * size, size, 1, u, 0, depth, error, w * depth, depth, 1, w, depth)
        for c in range(d):
            read[c] = value[c] - read[c]
            u[w, c] = beta[w] * read[c]


@jit_with_memory
def _memory(longest, n, d, like):
    """Return the memory of one head: vectors, numbers and tables. What pads them is zero or is never read."""
    writes, depth = _padded(longest * n), _padded(d)
    vectors = (
        np.zeros((longest, depth), like.dtype),
        np.zeros((writes, depth), like.dtype),
        np.zeros((writes, depth), like.dtype),
        np.zeros((writes, depth), like.dtype),
        np.zeros((depth, writes), like.dtype),
    )
    numbers = np.empty(longest, like.dtype), np.empty(writes, like.dtype), np.empty(writes, like.dtype), np.empty(writes, like.dtype)
    return vectors, numbers, (np.zeros((writes, writes), like.dtype), np.zeros((longest, writes), like.dtype))


@jit_with_memory
def scan(channels, source, starts, longest, weight, heads, n, epsilon, only_end, y):
    """Write what each row reads to `y`, or what the last of each sample reads if `only_end`.

    `weight` is the convolution, (K, G, J), and `epsilon` the smallest norm that a query or a key is divided by.
    """
    num_trials, num_convolved, num_lags = weight.shape
    num_samples, width = (len(starts) - 1) // num_trials, y.shape[1]
    d = width // heads
    by_lag, row = np.empty((num_lags, num_convolved), y.dtype), np.empty((longest, channels.shape[1]), y.dtype)
    before, z = np.empty((longest, num_convolved), y.dtype), np.empty((longest, num_convolved), y.dtype)
    vectors, numbers, tables = _memory(longest, n, d, y)
    u, reads = vectors[3], tables[1]
    out = np.empty((longest, _padded(d)), y.dtype)
    for s in range(len(starts) - 1):
        if s % num_samples == 0:
            _by_lag(weight[s // num_samples], by_lag)
        start, num_tokens = starts[s], starts[s + 1] - starts[s]
        first_read = num_tokens - 1 if only_end else 0
        to, num_reads = s if only_end else start, num_tokens - first_read
        _gather(channels, source, start, num_tokens, row)
        convolve(row, by_lag, num_tokens, first_read, width, before, z)
        for head in range(heads):
            _solve(
                *(row, z, num_tokens, first_read, head, heads, n, num_convolved, d, epsilon, vectors, numbers, tables)
            )
            _clear(out, num_reads)
            add_small_product(
                *(reads, 0, reads.shape[1], 1, u, 0, u.shape[1], out, 0, out.shape[1]),
                *(num_reads, num_tokens * n, out.shape[1]),
            )
            for r in range(num_reads):
                for c in range(d):
                    y[to + r, head * d + c] = out[r, c]


@jit_with_memory
def scan_back(g_y, channels, source, starts, longest, weight, heads, n, epsilon, only_end, g_channels, g_weight):
    """Add the gradients of the channels and of the convolution."""
    num_trials, num_convolved, num_lags = weight.shape
    num_samples, width, num_channels = (len(starts) - 1) // num_trials, g_y.shape[1], channels.shape[1]
    d = width // heads
    decays = num_channels > num_convolved + n * heads
    by_lag, g_by_lag = np.empty((num_lags, num_convolved), g_y.dtype), np.zeros((num_lags, num_convolved), g_y.dtype)
    row, g_row = np.empty((longest, num_channels), g_y.dtype), np.empty((longest, num_channels), g_y.dtype)
    before, z, g_z = (
        np.empty((longest, num_convolved), g_y.dtype),
        np.empty((longest, num_convolved), g_y.dtype),
        np.empty((longest, num_convolved), g_y.dtype),
    )
    vectors, numbers, tables = _memory(longest, n, d, g_y)
    (q, k, error, u, _), (q_inverse, k_inverse, beta, since), (overlap, reads) = vectors, numbers, tables
    # Gradients: of Q, K and what is read; of U, then of the right-hand side, alone and times β.
    (g_q, g_k, g_u, g_value, u_columns), _, (g_overlap, g_reads) = _memory(longest, n, d, g_y)
    g_out, g_since = np.zeros((longest, _padded(d)), g_y.dtype), np.empty(longest * n, g_y.dtype)
    size, depth = overlap.shape[1], k.shape[1]
    for s in range(len(starts) - 1):
        if s % num_samples == 0:
            _by_lag(weight[s // num_samples], by_lag)
            _clear(g_by_lag, num_lags)
        start, num_tokens = starts[s], starts[s + 1] - starts[s]
        first_read = num_tokens - 1 if only_end else 0
        to, num_reads, num_writes = s if only_end else start, num_tokens - first_read, num_tokens * n
        columns = _padded(num_writes)
        _gather(channels, source, start, num_tokens, row)
        _clear(g_row, num_tokens)
        convolve(row, by_lag, num_tokens, first_read, width, before, z)
        for head in range(heads):
            _solve(
                *(row, z, num_tokens, first_read, head, heads, n, num_convolved, d, epsilon, vectors, numbers, tables)
            )
            for r in range(num_reads):
                for c in range(d):
                    g_out[r, c] = g_y[to + r, head * d + c]
            _transpose(u, num_writes, u_columns)
            _clear(g_reads, num_reads)
            _clear(g_q, num_reads)
            _clear(g_k, num_writes)
            _clear(g_u, num_writes)
            _clear(g_overlap, num_writes)
            add_small_product(g_out, 0, depth, 1, u_columns, 0, size, g_reads, 0, size, num_reads, d, columns)
            add_small_product(reads, 0, 1, size, g_out, 0, depth, g_u, 0, depth, num_writes, num_reads, depth)
            for w in range(num_writes):
                g_since[w] = 0
            for r in range(num_reads):
                last = (first_read + r) * n
                if decays:
                    for j in range(last + n):
                        g_since[last] += g_reads[r, j] * reads[r, j]
                        g_since[j] -= g_reads[r, j] * reads[r, j]
                        g_reads[r, j] *= exp2(since[last] - since[j])
                for j in range(last + n, num_writes):
                    g_reads[r, j] = 0
            add_small_product(g_reads, 0, size, 1, k, 0, depth, g_q, 0, depth, num_reads, num_writes, depth)
            add_small_product(g_reads, 0, 1, size, q, 0, depth, g_k, 0, depth, num_writes, num_reads, depth)
            # From the last write to the first: later writes read what u_w left behind.
            for back in range(num_writes):
                w = num_writes - 1 - back
                known = g_value[w]
                for c in range(depth):
                    known[c] = 0
                add_small_product(
                    *(overlap, (w + 1) * size + w, 1, size, g_value, (w + 1) * depth, depth),
                    *(g_value, w * depth, depth, 1, back, depth),
                )
                g_beta = _ZERO
                for c in range(d):
                    g_right = g_u[w, c] - known[c]
                    g_beta += g_right * error[w, c]
                    known[c] = beta[w] * g_right
                g_row[w // n, num_convolved + w % n * heads + head] = g_beta
            add_small_product(g_value, 0, depth, 1, u_columns, 0, size, g_overlap, 0, size, num_writes, d, columns)
            for w in range(num_writes):
                g_overlap[w, w] = 0
                for j in range(w):
                    g = -g_overlap[w, j]
                    if decays:
                        g_since[w] += g * overlap[w, j]
                        g_since[j] -= g * overlap[w, j]
                        g *= exp2(since[w] - since[j])
                    g_overlap[w, j] = g
                    g_overlap[j, w] = g
            add_small_product(g_overlap, 0, size, 1, k, 0, depth, g_k, 0, depth, num_writes, num_writes, depth)
            for r in range(num_reads):
                unit_back(g_q[r], q[r], q_inverse[r], epsilon, d, g_z[first_read + r, head * d :])
            for w in range(num_writes):
                t, place = w // n, width + w % n * width + head * d
                unit_back(g_k[w], k[w], k_inverse[w], epsilon, d, g_z[t, place:])
                for c in range(d):
                    g_z[t, place + n * width + c] = g_value[w, c]
            if decays:
                total = _ZERO
                for back in range(num_tokens):
                    t = num_tokens - 1 - back
                    for i in range(n):
                        total += g_since[t * n + i]
                    g_row[t, num_convolved + n * heads + head] = total
        convolve_back(g_z, row, by_lag, num_tokens, first_read, width, before, g_row, g_by_lag)
        for t in range(num_tokens):
            for e in range(num_channels):
                g_channels[source[start + t], e] += g_row[t, e]
        if (s + 1) % num_samples == 0:
            for lag in range(num_lags):
                for g in range(num_convolved):
                    g_weight[s // num_samples, g, num_lags - 1 - lag] += g_by_lag[lag, g]
