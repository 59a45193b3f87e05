"""Compiled recurrence of the delta rule's mixers, in the form of small matrix products.

Its twin is `scan` in `delta_net/network.py`; the equation stands in `recurrence/delta_rule.py`. For a head of a sample,
with its keys as the rows of K, its queries as those of Q and D the decay between two writes:

    (I + β A) U = β V,  A = K Kᵀ ∘ D below the diagonal;    O = R U,  R = Q Kᵀ ∘ D where the write is not later

Backward computes everything again instead of fetching it from memory. Rows are laid out as in `residual_kernels.py`.
"""

import math

import numpy as np

from orch.models.compiled.activation import exp2
from orch.models.compiled.convolution import convolve, convolve_back
from orch.models.compiled.jit import inlined, jit_with_memory
from orch.models.compiled.tile import LANES, add_row, add_small_product
from orch.models.compiled.vectors import add_scaled, dot, scale

_LOG2_E, _ONE, _ZERO = np.float32(1 / math.log(2)), np.float32(1), np.float32(0)


@inlined
def _padded(size):
    return (size + LANES - 1) // LANES * LANES


@inlined
def _clear(x, num_rows):
    for i in range(num_rows):
        row = x[i]
        for c in range(len(row)):
            row[c] = 0


@inlined
def _transpose(x, num_rows, to):
    for row in range(num_rows):
        for c in range(x.shape[1]):
            to[c, row] = x[row, c]


@inlined
def _gather(channels, source, start, num_tokens, row):
    for t in range(num_tokens):
        own, to = channels[source[start + t]], row[t]
        for e in range(len(to)):
            to[e] = own[e]


@inlined
def _by_lag(weight, to):
    """Write a convolution from the latest token to the earliest: (J, G)."""
    for lag in range(len(to)):
        for g in range(to.shape[1]):
            to[lag, g] = weight[g, len(to) - 1 - lag]


@inlined
def _unit(z, t, place, d, smallest, to, row):
    """Write a vector of norm 1, and return what it was multiplied with."""
    inverse = _ONE / max(np.float32(math.sqrt(dot(z, t, place, z, t, place, d))), smallest)
    scale(z, t, place, inverse, to, row, 0, d)
    return inverse


@inlined
def _unit_back(g, unit, row, inverse, smallest, d, to, t, place):
    """Write the gradient of the vector that `_unit` was given."""
    along = dot(g, row, 0, unit, row, 0, d) if inverse * smallest < _ONE else _ZERO
    scale(g, row, 0, inverse, to, t, place, d)
    add_scaled(unit, row, 0, -along * inverse, to, t, place, d)


@inlined
def _solve(row, z, num_tokens, first_read, head, heads, n, num_convolved, d, smallest, vectors, numbers, tables):
    """Fill in a head's vectors, the errors V - A U, the writes U, and the matrices A and R."""
    q, k, error, u, k_columns = vectors
    q_inverse, k_inverse, beta, since = numbers
    overlap, reads = tables
    width, num_writes, num_reads = d * heads, num_tokens * n, num_tokens - first_read
    decays = row.shape[1] > num_convolved + n * heads
    total = _ZERO
    for t in range(num_tokens):
        if t >= first_read:
            q_inverse[t - first_read] = _unit(z, t, head * d, d, smallest, q, t - first_read)
        if decays:
            total += row[t, num_convolved + n * heads + head] * _LOG2_E
        for i in range(n):
            w, place = t * n + i, (1 + i) * width + head * d
            k_inverse[w] = _unit(z, t, place, d, smallest, k, w)
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
        seen = (first_read + r + 1) * n
        later = reads[r, seen:]
        for j in range(num_writes - seen):
            later[j] = 0
    for t in range(num_tokens):
        for i in range(n):
            w = t * n + i
            scale(k, w, 0, _ZERO, error, w, 0, depth)
            add_row(overlap, w * size, 1, u, 0, depth, error, w * depth, w, depth)
            scale(error, w, 0, -_ONE, error, w, 0, depth)
            add_scaled(z, t, (1 + n + i) * width + head * d, _ONE, error, w, 0, d)
            scale(error, w, 0, beta[w], u, w, 0, depth)


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
    numbers = (
        np.empty(longest, like.dtype),
        np.empty(writes, like.dtype),
        np.empty(writes, like.dtype),
        np.empty(writes, like.dtype),
    )
    return vectors, numbers, (np.zeros((writes, writes), like.dtype), np.zeros((longest, writes), like.dtype))


@jit_with_memory
def scan(channels, source, starts, longest, weight, heads, n, smallest, only_end, y):
    """Write what each row reads to `y`, or what the last of each sample reads if `only_end`.

    `weight` is the convolution, (K, G, J), and `smallest` the smallest norm that a query or a key is divided by.
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
                *(row, z, num_tokens, first_read, head, heads, n, num_convolved, d, smallest, vectors, numbers, tables)
            )
            _clear(out, num_reads)
            add_small_product(
                *(reads, 0, reads.shape[1], 1, u, 0, u.shape[1], out, 0, out.shape[1]),
                *(num_reads, num_tokens * n, out.shape[1]),
            )
            for r in range(num_reads):
                scale(out, r, 0, _ONE, y, to + r, head * d, d)


@jit_with_memory
def scan_back(g_y, channels, source, starts, longest, weight, heads, n, smallest, only_end, g_channels, g_weight):
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
    g_out = np.zeros((longest, _padded(d)), g_y.dtype)
    g_since, g_beta = np.empty(longest * n, g_y.dtype), np.empty(longest * n, g_y.dtype)
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
                *(row, z, num_tokens, first_read, head, heads, n, num_convolved, d, smallest, vectors, numbers, tables)
            )
            for r in range(num_reads):
                scale(g_y, to + r, head * d, _ONE, g_out, r, 0, d)
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
                g_read, read = g_reads[r], reads[r]
                if decays:
                    total = _ZERO
                    for j in range(last + n):
                        total += g_read[j] * read[j]
                    for j in range(last + n):
                        g_since[j] -= g_read[j] * read[j]
                        g_read[j] *= exp2(since[last] - since[j])
                    g_since[last] += total
                later = g_read[last + n :]
                for j in range(num_writes - last - n):
                    later[j] = 0
            add_small_product(g_reads, 0, size, 1, k, 0, depth, g_q, 0, depth, num_reads, num_writes, depth)
            add_small_product(g_reads, 0, 1, size, q, 0, depth, g_k, 0, depth, num_writes, num_reads, depth)
            # From the last write to the first: later writes read what u_w left behind.
            for back in range(num_writes):
                w = num_writes - 1 - back
                scale(k, w, 0, _ZERO, g_value, w, 0, depth)
                later = w + 1
                add_row(
                    *(overlap, later * size + w, size, g_value, later * depth, depth, g_value, w * depth, back, depth)
                )
                add_scaled(g_value, w, 0, -_ONE, g_u, w, 0, depth)
                g_beta[w] = dot(g_u, w, 0, error, w, 0, depth)
                scale(g_u, w, 0, beta[w], g_value, w, 0, depth)
            add_small_product(g_value, 0, depth, 1, u_columns, 0, size, g_overlap, 0, size, num_writes, d, columns)
            for w in range(num_writes):
                g_own, own = g_overlap[w], overlap[w]
                for j in range(w):
                    g_own[j] = -g_own[j]
                if decays:
                    total = _ZERO
                    for j in range(w):
                        total += g_own[j] * own[j]
                    for j in range(w):
                        g_since[j] -= g_own[j] * own[j]
                        g_own[j] *= exp2(since[w] - since[j])
                    g_since[w] += total
                for j in range(w):
                    g_overlap[j, w] = g_own[j]
                g_own[w] = 0
            add_small_product(g_overlap, 0, size, 1, k, 0, depth, g_k, 0, depth, num_writes, num_writes, depth)
            for r in range(num_reads):
                _unit_back(g_q, q, r, q_inverse[r], smallest, d, g_z, first_read + r, head * d)
            for t in range(num_tokens):
                for i in range(n):
                    w, place = t * n + i, (1 + i) * width + head * d
                    _unit_back(g_k, k, w, k_inverse[w], smallest, d, g_z, t, place)
                    scale(g_value, w, 0, _ONE, g_z, t, place + n * width, d)
                    g_row[t, num_convolved + i * heads + head] = g_beta[w]
            if decays:
                total = _ZERO
                for back in range(num_tokens):
                    t = num_tokens - 1 - back
                    for i in range(n):
                        total += g_since[t * n + i]
                    g_row[t, num_convolved + n * heads + head] = total
        convolve_back(g_z, row, by_lag, num_tokens, first_read, width, before, g_row, g_by_lag)
        for t in range(num_tokens):
            own, to = g_row[t], g_channels[source[start + t]]
            for e in range(num_channels):
                to[e] += own[e]
        if (s + 1) % num_samples == 0:
            for lag in range(num_lags):
                for g in range(num_convolved):
                    g_weight[s // num_samples, g, num_lags - 1 - lag] += g_by_lag[lag, g]
