"""Compiled training step of the delta rule's models, without autograd. Its twin is `delta_net/network.py`.

Padding is left out. The first block enters once per token of the vocabulary; the last one leaves only at [EOI]. Each
kernel is called once for all trials of a pack and serves one after the other.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.delta_kernels import Entered, Left, Mixer, enter, enter_back, leave, leave_back
from orch.models.compiled.delta_scan import scan, scan_back
from orch.models.compiled.head import head_loss
from orch.models.compiled.residual_kernels import (
    Inside,
    Perceptron,
    lay_out,
    normalise,
    normalise_back,
    perceptron,
    perceptron_back,
)
from orch.models.token_table import Gradient
from orch.models.vocabularies import Vocabularies


class Options(NamedTuple):
    """The settings of a model on which the kernels depend."""

    layers: int
    heads: int
    num_writes: int
    largest_beta: float
    norm_epsilon: float
    """Added to mean squares."""
    smallest_norm: float
    """Least norm by which a query or a key is divided."""


class Rows(NamedTuple):
    """Vectors of all trials of a pack, one per row."""

    x: np.ndarray
    firsts: np.ndarray
    """The first row of each trial, and the end."""


class Parameters:
    """Parameters of a pack as arrays, and their gradients, which begin at zero."""

    def __init__(self, get: Callable[[str], Tensor], names: list[str]):
        self.values = {name: get(name).detach().numpy() for name in names}
        self.gradients = {name: np.zeros_like(value) for name, value in self.values.items()}
        self._num_trials, _, self._width = self.values["embedding"].shape

    def mixer(self, layer: int) -> tuple[Mixer, Mixer]:
        """Return the parameters of a block's mixers and their gradients."""
        K, H = self._num_trials, self._width
        absent = {"decay": (K, 0, H), "decay_bias": (K, 0), "decay_rate": (K, 0), "output_gate": (K, 0, H)}
        values, gradients = self._of(f"blocks.{layer}.mixer.", Mixer._fields, absent)
        return Mixer(*values), Mixer(*gradients)

    def convolution(self, layer: int, num_channels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a block's convolutions, (K, G, J), and their gradients. Without one, the token itself is taken."""
        name = f"blocks.{layer}.mixer.convolution"
        if name in self.values:
            return self.values[name][:, :, 0], self.gradients[name][:, :, 0]
        shape = self._num_trials, num_channels, 1
        return np.ones(shape, np.float32), np.zeros(shape, np.float32)

    def perceptron(self, layer: int) -> tuple[Perceptron, Perceptron] | None:
        """Return the parameters of a block's perceptrons and their gradients."""
        if f"blocks.{layer}.mlp.norm" not in self.values:
            return None
        values, gradients = self._of(f"blocks.{layer}.mlp.", Perceptron._fields, {})
        return Perceptron(*values), Perceptron(*gradients)

    def _of(
        self, prefix: str, fields: tuple[str, ...], absent: dict[str, tuple[int, ...]]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        values, gradients = [], []
        for field in fields:
            value = self.values.get(prefix + field)
            values.append(np.empty(absent[field], np.float32) if value is None else value)
            gradients.append(values[-1] if value is None else self.gradients[prefix + field])
        return values, gradients


class Batch:
    """The rows of a batch and where each sample begins."""

    def __init__(self, tokens_KBT: Tensor, num_readable: int, num_embeddings: int):
        K, B, self.longest = tokens_KBT.shape
        table = np.empty(tokens_KBT.numel(), np.int64)
        self.starts = np.empty(K * B + 1, np.int64)
        lay_out(tokens_KBT.contiguous().numpy(), num_readable, num_embeddings, table, self.starts)
        self.table = table[: self.starts[-1]]
        """The row of the embeddings that each row reads."""
        self.places = np.arange(len(self.table))
        self.firsts = self.starts[::B].copy()  # numba would compile everything again for a view with gaps
        self.ends, self.end_firsts = self.starts[1:] - 1, np.arange(K + 1) * B


class Block:
    """One block of the residual network: `forward`, then `backward`."""

    def __init__(self, parameters: Parameters, layer: int, batch: Batch, options: Options):
        self._mixer, self._g_mixer = parameters.mixer(layer)
        self._convolution, self._g_convolution = parameters.convolution(layer, self._mixer.projection.shape[1])
        self._perceptron = parameters.perceptron(layer)
        self._batch, self._options = batch, options
        # The vocabulary is tiny: the first block enters once per token, not once per row.
        self._source = batch.table if layer == 0 else batch.places
        self._is_last = layer == options.layers - 1
        self._leaving = self._source[batch.ends] if self._is_last else self._source

    def forward(self, rows: Rows) -> Rows:
        """Return the rows after this block: one per row of the batch, or one per sample if it is the last."""
        (num_rows, H), options, mixer = rows.x.shape, self._options, self._mixer
        num_channels = mixer.projection.shape[1] + mixer.beta.shape[1] + mixer.decay.shape[1]
        self._rows = rows
        self._entered = Entered(*_empty(num_rows, H, 0, H, num_channels, mixer.decay.shape[1] or 1))
        enter(rows.x, rows.firsts, mixer, np.float32(options.largest_beta), options.norm_epsilon, self._entered)
        num_left = len(self._leaving)
        y, out = _empty(num_left, H, H)
        scan(self._entered.channels, *self._scanned(), y)
        self._firsts = self._batch.end_firsts if self._is_last else self._batch.firsts
        gate_size = mixer.output_gate.shape[1]
        self._left = Left(*_empty(num_left, H, options.heads, H, gate_size or 1, gate_size or 1, H))
        leave(
            *(rows.x, self._entered.scaled, self._leaving, y, self._firsts, mixer, options.norm_epsilon),
            *(self._left, out),
        )
        if self._perceptron is None:
            return Rows(out, self._firsts)
        M = self._perceptron[0].gate.shape[1]
        self._inside = Inside(*_empty(num_left, H, 0, H, M, M, M))
        (after,) = _empty(num_left, H)
        perceptron(out, self._firsts, self._perceptron[0], options.norm_epsilon, self._inside, after)
        return Rows(after, self._firsts)

    def backward(self, g: np.ndarray) -> np.ndarray:
        """Return the gradient of the input, and add those of the parameters."""
        if self._perceptron is not None:
            (g_middle,) = _empty(len(g), g.shape[1])
            perceptron_back(g, self._firsts, self._perceptron[0], self._inside, self._perceptron[1], g_middle)
            g = g_middle
        (g_y,) = _empty(len(g), g.shape[1])
        g_x, g_scaled = np.zeros_like(self._rows.x), np.zeros_like(self._rows.x)
        leave_back(g, self._leaving, self._firsts, self._mixer, self._left, self._g_mixer, g_y, g_scaled, g_x)
        g_channels = np.zeros_like(self._entered.channels)
        scan_back(g_y, self._entered.channels, *self._scanned(), g_channels, self._g_convolution)
        enter_back(
            *(g_channels, g_scaled, self._rows.firsts, self._mixer, np.float32(self._options.largest_beta)),
            *(self._entered, self._g_mixer, g_x),
        )
        return g_x

    def _scanned(self) -> tuple[object, ...]:
        options, batch = self._options, self._batch
        sizes = options.heads, options.num_writes, np.float32(options.smallest_norm)
        return self._source, batch.starts, batch.longest, self._convolution, *sizes, self._is_last


def loss_and_gradients(
    get: Callable[[str], Tensor],
    names: list[str],
    trained_names: list[str],
    tokens_KBT: Tensor,
    target_KB: Tensor,
    vocabularies: Vocabularies,
    options: Options,
) -> tuple[Tensor, dict[str, Gradient]]:
    """Return each trial's mean loss, and the gradients by name of those that are trained.

    `get` returns the stacked parameter of a name.
    """
    parameters = Parameters(get, names)
    E_KVH, g_E_KVH = parameters.values["embedding"], parameters.gradients["embedding"]
    K, V, H = E_KVH.shape
    batch = Batch(tokens_KBT, vocabularies.padded.readable, V)
    rows = Rows(E_KVH.reshape(K * V, H), np.arange(K + 1) * V)
    blocks = [Block(parameters, layer, batch, options) for layer in range(options.layers)]
    for block in blocks:
        rows = block.forward(rows)
    normed, inverse, scaled = _empty(len(rows.x), H, 0, H)
    weight, g_weight = parameters.values["norm"], parameters.gradients["norm"]
    normalise(rows.x, rows.firsts, weight, options.norm_epsilon, normed, inverse, scaled)
    h_KBH = torch.from_numpy(scaled).view(K, -1, H)
    loss_K, g_h, g_head, g_bias = head_loss(vocabularies, get("head.weight"), get("head.bias"), h_KBH, target_KB)
    (g,) = _empty(len(rows.x), H)
    normalise_back(g_h.view(-1, H).numpy(), rows.firsts, weight, normed, inverse, g_weight, g)
    for block in reversed(blocks):
        g = block.backward(g)
    g_E_KVH += g.reshape(K, V, H)
    found: dict[str, Gradient] = {"head.weight": g_head, "head.bias": g_bias}
    for name in trained_names:
        if name not in found:
            found[name] = torch.from_numpy(parameters.gradients[name])
    return loss_K, {name: found[name] for name in trained_names}


def _empty(num_rows: int, *widths: int) -> list[np.ndarray]:
    """Return arrays with so many rows; one of width 0 is a vector."""
    return [np.empty((num_rows, width) if width else num_rows, np.float32) for width in widths]
