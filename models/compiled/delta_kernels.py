"""Compiled ends of the delta rule's mixers: what enters the recurrence, and what leaves it.

Their twins are `enter` and `leave` in `delta_net/network.py`. The input x of a block has a row per token of each
trial's vocabulary for the first block, and one per row of the batch for the others: `source` says which row is whose.
Rows are laid out as in `residual_kernels.py`. A model without decay or gate has parameters of size 0 for them.
"""

import math
from typing import NamedTuple

import numpy as np

from orch.models.compiled.activation import sigmoid
from orch.models.compiled.jit import inlined, jit_with_memory
from orch.models.compiled.residual_kernels import fill, gate, gate_back, normalise, normalise_back
from orch.models.compiled.tile import PANEL, add_product

_ONE, _ZERO = np.float32(1), np.float32(0)


class Mixer(NamedTuple):
    """Parameters of the mixers of a block, stacked over trials; or their gradients."""

    norm: np.ndarray
    projection: np.ndarray
    beta: np.ndarray
    decay: np.ndarray
    decay_bias: np.ndarray
    decay_rate: np.ndarray
    output_gate: np.ndarray
    output_norm: np.ndarray
    output: np.ndarray


class Entered(NamedTuple):
    """The inputs that enter the recurrence for each row of a block's input, and what the backward pass needs for it."""

    normed: np.ndarray
    inverse: np.ndarray
    scaled: np.ndarray
    channels: np.ndarray
    """What is convolved, then β for each write and head, then the logarithm of the decay of each head."""
    step: np.ndarray
    """What softplus makes the decay of."""


class Left(NamedTuple):
    """What the backward pass needs of what leaves the recurrence. It overwrites it."""

    normed: np.ndarray
    inverse: np.ndarray
    scaled: np.ndarray
    gathered: np.ndarray
    opening: np.ndarray
    mixed: np.ndarray


@inlined
def _join(mixer, k, joined):
    """Write the matrices of all channels one below the other."""
    row = 0
    for matrix in (mixer.projection[k], mixer.beta[k], mixer.decay[k]):
        for g in range(len(matrix)):
            for m in range(matrix.shape[1]):
                joined[row, m] = matrix[g, m]
            row += 1


@inlined
def _add_parts(joined, mixer, k):
    """Add the gradients of all channels' matrices to each."""
    row = 0
    for matrix in (mixer.projection[k], mixer.beta[k], mixer.decay[k]):
        for g in range(len(matrix)):
            for m in range(matrix.shape[1]):
                matrix[g, m] += joined[row, m]
            row += 1


@jit_with_memory
def enter(x, firsts, mixer, largest_beta, epsilon, entered):
    """Fill in what enters the recurrence. β is in [0, `largest_beta`]."""
    normed, inverse, scaled, channels, step = entered
    num_convolved, num_betas, heads = mixer.projection.shape[1], mixer.beta.shape[1], mixer.decay.shape[1]
    panel, joined = np.empty(PANEL, x.dtype), np.empty((channels.shape[1], x.shape[1]), x.dtype)
    normalise(x, firsts, mixer.norm, epsilon, normed, inverse, scaled)
    for k in range(len(mixer.norm)):
        a, b = firsts[k], firsts[k + 1]
        _join(mixer, k, joined)
        fill(channels[a:b], 0)
        add_product(scaled[a:b], joined.T, channels[a:b], panel)
        for p in range(a, b):
            for i in range(num_convolved, num_convolved + num_betas):
                channels[p, i] = largest_beta * sigmoid(channels[p, i])
            for head in range(heads):
                place = num_convolved + num_betas + head
                before = channels[p, place] + mixer.decay_bias[k, head]
                step[p, head] = before
                softplus = max(before, _ZERO) + math.log1p(math.exp(-abs(before)))
                channels[p, place] = -math.exp(mixer.decay_rate[k, head]) * softplus


@jit_with_memory
def enter_back(g_channels, g_scaled, firsts, mixer, largest_beta, entered, gradients, g_x):
    """Add the gradients of x and of the parameters; `g_scaled` has that of the gate already. Both are overwritten."""
    normed, inverse, scaled, channels, step = entered
    num_convolved, num_betas, heads = mixer.projection.shape[1], mixer.beta.shape[1], mixer.decay.shape[1]
    joined, g_joined = (
        np.empty((channels.shape[1], scaled.shape[1]), scaled.dtype),
        np.empty((channels.shape[1], scaled.shape[1]), scaled.dtype),
    )
    panel, more = np.empty(PANEL, scaled.dtype), np.empty(scaled.shape, scaled.dtype)
    for k in range(len(mixer.norm)):
        a, b = firsts[k], firsts[k + 1]
        for p in range(a, b):
            for i in range(num_convolved, num_convolved + num_betas):
                g_channels[p, i] *= channels[p, i] * (_ONE - channels[p, i] / largest_beta)
            for head in range(heads):
                place = num_convolved + num_betas + head
                gradients.decay_rate[k, head] += g_channels[p, place] * channels[p, place]
                g_channels[p, place] *= -math.exp(mixer.decay_rate[k, head]) * sigmoid(step[p, head])
                gradients.decay_bias[k, head] += g_channels[p, place]
        fill(g_joined, 0)
        add_product(g_channels[a:b].T, scaled[a:b], g_joined, panel)
        _add_parts(g_joined, gradients, k)
        _join(mixer, k, joined)
        add_product(g_channels[a:b], joined, g_scaled[a:b], panel)
    normalise_back(g_scaled, firsts, mixer.norm, normed, inverse, gradients.norm, more)
    for p in range(len(g_x)):
        for m in range(g_x.shape[1]):
            g_x[p, m] += more[p, m]


@inlined
def _normalise_heads(y, weight, epsilon, normed, inverse, scaled):
    """Divide each head's part of a row by its root mean square; times the weight, which heads share, it is `scaled`."""
    d = len(weight)
    for p in range(len(y)):
        for head in range(inverse.shape[1]):
            total = _ZERO
            for c in range(head * d, (head + 1) * d):
                total += y[p, c] * y[p, c]
            factor = _ONE / np.float32(math.sqrt(total / np.float32(d) + epsilon))
            inverse[p, head] = factor
            for c in range(d):
                normed[p, head * d + c] = y[p, head * d + c] * factor
                scaled[p, head * d + c] = y[p, head * d + c] * factor * weight[c]


@inlined
def _normalise_heads_back(g, weight, normed, inverse, g_weight, g_y):
    """Write the gradient of y, and add that of the weight."""
    d = len(weight)
    for p in range(len(g)):
        for head in range(inverse.shape[1]):
            along = _ZERO
            for c in range(d):
                along += g[p, head * d + c] * weight[c] * normed[p, head * d + c]
            along /= np.float32(d)
            for c in range(d):
                g_weight[c] += g[p, head * d + c] * normed[p, head * d + c]
            for c in range(d):
                place = head * d + c
                g_y[p, place] = (g[p, place] * weight[c] - normed[p, place] * along) * inverse[p, head]


@jit_with_memory
def leave(x, entered_scaled, source, y, firsts, mixer, epsilon, left, out):
    """Write the input of each row that leaves with what the mixer adds. `source` and `y` are those of these rows."""
    normed, inverse, scaled, gathered, opening, mixed = left
    panel, is_gated = np.empty(PANEL, x.dtype), mixer.output_gate.shape[1] > 0
    for k in range(len(mixer.norm)):
        a, b = firsts[k], firsts[k + 1]
        _normalise_heads(y[a:b], mixer.output_norm[k], epsilon, normed[a:b], inverse[a:b], scaled[a:b])
        if is_gated:
            for p in range(a, b):
                for m in range(x.shape[1]):
                    gathered[p, m] = entered_scaled[source[p], m]
            fill(opening[a:b], 0)
            add_product(gathered[a:b], mixer.output_gate[k].T, opening[a:b], panel)
            gate(opening[a:b], scaled[a:b], mixed[a:b])
        else:
            for p in range(a, b):
                for m in range(x.shape[1]):
                    mixed[p, m] = scaled[p, m]
        for p in range(a, b):
            for m in range(x.shape[1]):
                out[p, m] = x[source[p], m]
        add_product(mixed[a:b], mixer.output[k].T, out[a:b], panel)


@jit_with_memory
def leave_back(g, source, firsts, mixer, left, gradients, g_y, g_scaled, g_x):
    """Write the gradient of y, and add those of the parameters, of x and of x as it is after its norm and scale."""
    normed, inverse, scaled, gathered, opening, mixed = left
    panel, is_gated = np.empty(PANEL, g.dtype), mixer.output_gate.shape[1] > 0
    for k in range(len(mixer.norm)):
        a, b = firsts[k], firsts[k + 1]
        add_product(g[a:b].T, mixed[a:b], gradients.output[k], panel)
        fill(mixed[a:b], 0)
        add_product(g[a:b], mixer.output[k], mixed[a:b], panel)
        g_read = mixed[a:b]
        if is_gated:
            gate_back(mixed[a:b], opening[a:b], scaled[a:b])
            g_read = scaled[a:b]
            add_product(opening[a:b].T, gathered[a:b], gradients.output_gate[k], panel)
            fill(gathered[a:b], 0)
            add_product(opening[a:b], mixer.output_gate[k], gathered[a:b], panel)
            for p in range(a, b):
                for m in range(g.shape[1]):
                    g_scaled[source[p], m] += gathered[p, m]
        _normalise_heads_back(
            g_read, mixer.output_norm[k], normed[a:b], inverse[a:b], gradients.output_norm[k], g_y[a:b]
        )
        for p in range(a, b):
            for m in range(g.shape[1]):
                g_x[source[p], m] += g[p, m]
