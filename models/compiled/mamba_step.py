"""Compiled training step of Mamba without autograd. Its twin is `mamba/network.py`.

Trials take turns, so that the numbers of one stay in the cache. Padding is left out; the last block is computed only as
far as the head reads it, that is at [EOI].
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled import mamba_kernels as kernels
from orch.models.compiled.head import head_loss
from orch.models.compiled.matmul import product
from orch.models.compiled.ragged import sum_rows
from orch.models.config import Vocabulary
from orch.models.vocabularies import Vocabularies

ROWS = 32
"""Rows of zeros are appended up to a multiple of this: oneDNN makes new machine code for every shape."""

Parameters = Mapping[str, Tensor]


class Sequences:
    """A batch of one trial, one sample after the other. The rows beyond the last sample read any token."""

    def __init__(self, tokens_BT: np.ndarray, num_readable: int):
        is_read = tokens_BT < num_readable
        lengths = is_read.sum(1)
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.longest, num_rows = int(lengths.max()), int(self.starts[-1])
        self.tokens = np.zeros(-(-num_rows // ROWS) * ROWS, np.int64)
        self.tokens[:num_rows] = tokens_BT[is_read]
        self.places, self.ends = np.arange(len(self.tokens)), self.starts[1:] - 1


class Norm:
    """Rows divided by their root mean square, times a weight."""

    def __init__(self, x: Tensor, weight: Tensor, epsilon: float):
        self._weight = weight.numpy()
        self._normed, self._inverse, self.out = (
            np.empty(x.shape, np.float32),
            np.empty(len(x), np.float32),
            torch.empty_like(x),
        )
        kernels.normalise_rows(x.numpy(), self._weight, epsilon, self._normed, self._inverse, self.out.numpy())

    def backward(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of the rows and of the weight."""
        g_x, g_weight = torch.empty_like(g), np.zeros_like(self._weight)
        kernels.normalise_rows_back(g.numpy(), self._weight, self._normed, self._inverse, g_weight, g_x.numpy())
        return g_x, torch.from_numpy(g_weight)


class Block:
    """One block of Mamba: `forward`, then `backward`."""

    def __init__(self, parameters: Parameters, batch: Sequences, source: np.ndarray, is_last: bool, epsilon: float):
        """`source` is the row of x, as `forward` is given it, for each row of the batch."""
        self._parameters, self._batch, self._source, self._is_last = parameters, batch, source, is_last
        self._at = batch.ends if is_last else batch.places
        self._epsilon = epsilon
        A_NI = parameters["mixer.A_log"].exp().neg_().mT.contiguous()
        self._decay = A_NI.numpy(), (A_NI / math.log(2)).numpy()
        self._filter = parameters["mixer.conv1d.weight"][:, 0].mT.flip(0).contiguous().numpy()

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows after this block: one per row of the batch, or one per sample if it is the last."""
        get, batch, source = self._parameters.__getitem__, self._batch, self._source
        self._norm = Norm(x, get("norm.weight"), self._epsilon)
        self._entered = product(self._norm.out, get("mixer.in_proj.weight")).numpy()
        shape = len(source), len(get("mixer.D"))
        self._before, self._x = np.empty(shape, np.float32), torch.zeros(shape)
        bias = get("mixer.conv1d.bias").numpy()
        kernels.convolve(self._entered, source, batch.starts, self._filter, bias, self._before, self._x.numpy())
        self._projected = product(self._x, get("mixer.x_proj.weight"))
        self._step = self._projected[:, : self._rank].contiguous()
        before_delta = product(self._step, get("mixer.dt_proj.weight")).add_(get("mixer.dt_proj.bias"))
        self._delta = torch.nn.functional.softplus(before_delta).numpy()
        self._y = np.zeros((len(self._at), shape[1]), np.float32)
        kernels.scan(
            *(self._x.numpy(), self._delta, self._decay[1], self._projected.numpy(), self._rank),
            *(batch.starts, self._is_last, self._y),
        )
        self._gated = torch.empty(self._y.shape)
        kernels.gate(*self._gate_inputs(), self._gated.numpy())
        return product(self._gated, get("mixer.out_proj.weight")).add_(x[torch.from_numpy(source[self._at])])

    def backward(self, g: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the gradients of x and of the parameters."""
        get, batch, source, rank = self._parameters.__getitem__, self._batch, self._source, self._rank
        zeros = {name: torch.zeros_like(get(f"mixer.{name}")) for name in ("D", "conv1d.bias", "dt_proj.bias")}
        g_filter, g_A_log = np.zeros_like(self._filter), np.zeros_like(self._decay[0])
        g_entered, g_x, g_before, g_projected = (
            torch.zeros(each.shape) for each in (self._entered, self._x, self._x, self._projected)
        )
        g_gated = product(g, get("mixer.out_proj.weight").T)
        g_y = np.empty_like(self._y)
        kernels.gate_back(
            g_gated.numpy(), *self._gate_inputs(), g_y, g_x.numpy(), zeros["D"].numpy(), g_entered.numpy()
        )
        kernels.scan_back(
            *(g_y, self._x.numpy(), self._delta, *self._decay, self._projected.numpy(), rank, batch.starts),
            *(self._is_last, batch.longest, g_x.numpy(), g_before.numpy(), zeros["dt_proj.bias"].numpy(), g_A_log),
            g_projected.numpy(),
        )
        g_projected[:, :rank] = product(g_before, get("mixer.dt_proj.weight").T)
        more_g_x = product(g_projected, get("mixer.x_proj.weight").T)
        kernels.convolve_back(
            *(g_x.numpy(), more_g_x.numpy(), self._entered, source, batch.starts, self._filter, self._before),
            *(np.empty_like(self._before[0]), g_entered.numpy(), g_filter, zeros["conv1d.bias"].numpy()),
        )
        g_normed = product(g_entered, get("mixer.in_proj.weight").T)
        g_source, g_norm = self._norm.backward(g_normed)
        sum_rows(source[self._at], g.numpy(), g_source.numpy())
        return g_source, {
            "norm.weight": g_norm,
            "mixer.A_log": torch.from_numpy(g_A_log).mT,
            "mixer.conv1d.weight": torch.from_numpy(g_filter).flip(0).mT[:, None],
            "mixer.in_proj.weight": product(g_entered.T, self._norm.out.T),
            "mixer.x_proj.weight": product(g_projected.T, self._x.T),
            "mixer.dt_proj.weight": product(g_before.T, self._step.T),
            "mixer.out_proj.weight": product(g.T, self._gated.T),
            **{f"mixer.{name}": gradient for name, gradient in zeros.items()},
        }

    @property
    def _rank(self) -> int:
        return self._parameters["mixer.dt_proj.weight"].shape[1]

    def _gate_inputs(self) -> tuple[np.ndarray, ...]:
        skip = self._parameters["mixer.D"].numpy()
        return self._y, self._x.numpy(), skip, self._entered, self._source, self._at


class Answer(NamedTuple):
    """The mean loss of a batch, and its gradients by parameter."""

    loss: Tensor
    gradients: dict[str, Tensor]


def loss_and_gradients(
    parameters: Parameters, num_layers: int, tokens_BT: Tensor, target_B: Tensor, num_readable: int, epsilon: float
) -> Answer:
    """Compute the step of one trial, given its parameters by name."""
    batch = Sequences(tokens_BT.numpy(), num_readable)
    E_VH = parameters["backbone.embeddings.weight"]
    x, blocks = E_VH[:num_readable], {}
    for layer in range(num_layers):
        prefix = f"backbone.layers.{layer}."
        of_block = {name.removeprefix(prefix): each for name, each in parameters.items() if name.startswith(prefix)}
        # The vocabulary is tiny: the first block enters once per token, not once per row.
        source = batch.tokens if layer == 0 else batch.places
        blocks[prefix] = Block(of_block, batch, source, layer == num_layers - 1, epsilon)
        x = blocks[prefix].forward(x)
    norm = Norm(x, parameters["backbone.norm_f.weight"], epsilon)
    no_bias = E_VH.new_zeros(1, len(E_VH))
    vocabularies = Vocabularies([Vocabulary(len(E_VH), num_readable)])
    loss, g, g_E, _ = head_loss(vocabularies, E_VH[None], no_bias, norm.out[None], target_B[None])
    gradients = {}
    g, gradients["backbone.norm_f.weight"] = norm.backward(g[0])
    for prefix, block in reversed(blocks.items()):
        g, own_gradients = block.backward(g)
        gradients |= {prefix + name: each for name, each in own_gradients.items()}
    g_E[0, :num_readable] += g
    return Answer(loss[0], gradients | {"backbone.embeddings.weight": g_E[0]})
