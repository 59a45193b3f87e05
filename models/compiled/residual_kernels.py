"""Compiled parts of a training step that networks of residual blocks share. Their twin is `residual/network.py`.

A batch of a pack has one row per token, without padding: one trial after the other, and one sample of it after the
other. Those of sample s begin at `starts[s]`. Arrays of rows have those of trial k from `firsts[k]` on. Every kernel
serves one trial after the other, so that a trial's numbers do not depend on its pack.
"""

from typing import NamedTuple

import numpy as np

from orch.models.compiled.activation import sigmoid
from orch.models.compiled.jit import inlined, jit, jit_with_memory
from orch.models.compiled.mamba_kernels import normalise_rows, normalise_rows_back
from orch.models.compiled.tile import PANEL, add_product

_ONE = np.float32(1)


class Perceptron(NamedTuple):
    """Parameters of the gated perceptrons of a block, stacked over trials; or their gradients."""

    norm: np.ndarray
    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray


class Inside(NamedTuple):
    """What the forward pass of a perceptron keeps. The backward pass overwrites it."""

    normed: np.ndarray
    inverse: np.ndarray
    scaled: np.ndarray
    before: np.ndarray
    up: np.ndarray
    inner: np.ndarray


@jit
def lay_out(tokens, num_readable, num_embeddings, source, starts):
    """Write the row of each trial's table that each row of the batch reads, and where each sample begins."""
    num_trials, num_samples, longest = tokens.shape
    row = 0
    for trial in range(num_trials):
        for s in range(num_samples):
            starts[trial * num_samples + s] = row
            for t in range(longest):
                if tokens[trial, s, t] < num_readable:
                    source[row] = trial * num_embeddings + tokens[trial, s, t]
                    row += 1
    starts[num_trials * num_samples] = row


@inlined
def fill(x, value):
    """Set all rows of a matrix."""
    for p in range(len(x)):
        for m in range(x.shape[1]):
            x[p, m] = value


@inlined
def gate(before, up, to):
    """Write silu of `before` times `up`."""
    for p in range(len(before)):
        for m in range(before.shape[1]):
            to[p, m] = before[p, m] * sigmoid(before[p, m]) * up[p, m]


@inlined
def gate_back(g, before, up):
    """Put the gradients in place of `before` and `up`."""
    for p in range(len(before)):
        for m in range(before.shape[1]):
            share = sigmoid(before[p, m])
            opened, at_up = before[p, m] * share, up[p, m]
            up[p, m] = g[p, m] * opened
            before[p, m] = g[p, m] * at_up * (share + opened * (_ONE - share))


@jit
def normalise(x, firsts, weight, epsilon, normed, inverse, scaled):
    """Divide rows by their root mean square, and write them to `normed`; times the trial's weight they are `scaled`."""
    for k in range(len(weight)):
        a, b = firsts[k], firsts[k + 1]
        normalise_rows(x[a:b], weight[k], epsilon, normed[a:b], inverse[a:b], scaled[a:b])


@jit
def normalise_back(g, firsts, weight, normed, inverse, g_weight, g_x):
    """Write the gradient of x, and add that of the weight."""
    for k in range(len(weight)):
        a, b = firsts[k], firsts[k + 1]
        normalise_rows_back(g[a:b], weight[k], normed[a:b], inverse[a:b], g_weight[k], g_x[a:b])


@jit_with_memory
def perceptron(x, firsts, parameters, epsilon, inside, out):
    """Write x with what the perceptron adds to it."""
    panel = np.empty(PANEL, x.dtype)
    normed, inverse, scaled, before, up, inner = inside
    normalise(x, firsts, parameters.norm, epsilon, normed, inverse, scaled)
    for k in range(len(parameters.norm)):
        a, b = firsts[k], firsts[k + 1]
        fill(before[a:b], 0)
        fill(up[a:b], 0)
        add_product(scaled[a:b], parameters.gate[k].T, before[a:b], panel)
        add_product(scaled[a:b], parameters.up[k].T, up[a:b], panel)
        gate(before[a:b], up[a:b], inner[a:b])
        for p in range(a, b):
            for m in range(x.shape[1]):
                out[p, m] = x[p, m]
        add_product(inner[a:b], parameters.down[k].T, out[a:b], panel)


@jit_with_memory
def perceptron_back(g, firsts, parameters, inside, gradients, g_x):
    """Write the gradient of x, and add those of the parameters."""
    panel = np.empty(PANEL, g.dtype)
    normed, inverse, scaled, before, up, inner = inside
    for k in range(len(parameters.norm)):
        a, b = firsts[k], firsts[k + 1]
        add_product(g[a:b].T, inner[a:b], gradients.down[k], panel)
        fill(inner[a:b], 0)
        add_product(g[a:b], parameters.down[k], inner[a:b], panel)
        gate_back(inner[a:b], before[a:b], up[a:b])
        add_product(before[a:b].T, scaled[a:b], gradients.gate[k], panel)
        add_product(up[a:b].T, scaled[a:b], gradients.up[k], panel)
        fill(scaled[a:b], 0)
        add_product(before[a:b], parameters.gate[k], scaled[a:b], panel)
        add_product(up[a:b], parameters.up[k], scaled[a:b], panel)
    normalise_back(scaled, firsts, parameters.norm, normed, inverse, gradients.norm, g_x)
    for p in range(len(g)):
        for m in range(g.shape[1]):
            g_x[p, m] += g[p, m]
