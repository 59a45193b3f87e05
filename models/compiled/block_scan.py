"""Compiled scan of block-diagonal transitions, over all samples of a stack of trials. Its twin is `recurrence/blocks.py`.

The kernels read tables in one of two layouts. For small blocks it is that of `recurrence/blocks.py`. For large blocks,
states and tables are transposed, so that the components of a block are adjacent. Padding is not read at all.
"""

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.jit import jit
from orch.models.compiled.large_blocks import apply_large, apply_large_back
from orch.models.compiled.normalisation import KINDS, NONE, normalise, normalise_back, num_divisors
from orch.models.compiled.small_blocks import apply_small, apply_small_back
from orch.models.recurrence.normalisation import Normalisation

_LARGEST_SMALL_BLOCK, _FEW_BLOCKS = 8, 16


def components_adjacent(b: int, n: int) -> bool:
    """Return whether blocks are large enough, or so few, that a block's components should be adjacent."""
    return b > _LARGEST_SMALL_BLOCK or (b > 2 and n < _FEW_BLOCKS)


class BlockScan:
    """One pass over a batch: `forward`, then `backward` if states were kept."""

    def __init__(
        self, table_KRbbn: Tensor, tokens_KBT: Tensor, h0_KH: Tensor, normalisation: Normalisation, every_step: bool,
        additive_KRH: Tensor | None = None,
    ):  # fmt: skip
        b, n = table_KRbbn.shape[3:]
        self._shape = table_KRbbn.shape
        self._large = components_adjacent(b, n)
        self._tokens = tokens_KBT.contiguous().numpy()
        self._kind = KINDS[normalisation.kind]
        self._each = self._kind if every_step else NONE
        self._state = (n, b) if self._large else (b, n)
        if self._large:
            self._rows = _array(table_KRbbn.permute(0, 1, 4, 2, 3))
        else:
            self._rows = _array(table_KRbbn)
        self._h0 = self._enter(h0_KH)
        K, R = table_KRbbn.shape[:2]
        self._additive = np.empty((K, 0, *self._state), self._rows.dtype)
        if additive_KRH is not None:
            self._additive = self._enter(additive_KRH)

    def forward(self, keep: bool) -> Tensor:
        """Return the final states, (K, B, H). Keep what `backward` needs if asked to."""
        K, B, T = self._tokens.shape
        dtype, divisors = self._rows.dtype, num_divisors(self._kind, self._shape[4])
        self._states = np.empty((K, B, T + 1, *self._state) if keep else (1, 1, 2, *self._state), dtype)
        self._divisors = np.empty((K, B, T, divisors) if keep else (1, 1, 1, divisors), dtype)
        final = np.empty((K, B, *self._state), dtype)
        _forward(
            self._rows, self._additive, self._tokens, self._h0, self._each, self._kind, self._large, keep,
            np.empty_like(self._h0[0]), self._states, self._divisors, final,
        )  # fmt: skip
        return self._leave(final)

    def backward(self, g_KBH: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the gradients of the table, of h_0 and of the additive term."""
        back = _array(torch.from_numpy(self._rows).transpose(-1, -2)) if self._large else self._rows
        g_rows, g_h0, g_additive = (np.zeros_like(x) for x in (self._rows, self._h0, self._additive))
        _backward(
            back, self._additive, self._tokens, self._each, self._kind, self._large,
            np.empty((2, *self._state), self._rows.dtype), np.empty_like(self._divisors[0, 0, 0]),
            self._states, self._divisors, self._enter(g_KBH), g_rows, g_h0, g_additive,
        )  # fmt: skip
        g_table = torch.from_numpy(g_rows)
        if self._large:
            g_table = g_table.permute(0, 1, 3, 4, 2)
        return g_table, self._leave(g_h0), self._leave(g_additive) if self._additive.shape[1] else None

    def _enter(self, x: Tensor) -> np.ndarray:
        """Return states as matrices, in the layout of the kernels."""
        b, n = self._shape[3:]
        x = torch.unflatten(x, -1, (b, n))
        return _array(x.transpose(-1, -2) if self._large else x)

    def _leave(self, x: np.ndarray) -> Tensor:
        states = torch.from_numpy(x)
        return (states.transpose(-1, -2) if self._large else states).flatten(-2)


def _array(x: Tensor) -> np.ndarray:
    array: np.ndarray = x.detach().contiguous().numpy()
    return array


@jit
def _forward(rows, additive, tokens, h0, each, last, large, keep, u, states, divisors, final):
    """Scan forwards. `each` is the normalisation of every step, `last` that of a sample's last one."""
    num_trials, num_samples, num_positions = tokens.shape
    num_readable = rows.shape[1]
    for k in range(num_trials):
        for s in range(num_samples):
            its_states, its_divisors = states[k * keep, s * keep], divisors[k * keep, s * keep]
            h = its_states[0]
            _copy(h0[k], h)
            for t in range(num_positions):
                token = tokens[k, s, t]
                if token >= num_readable:
                    break
                after = its_states[t + 1 if keep else (t + 1) % 2]
                if large:
                    apply_large(rows[k, token], h, u)
                else:
                    apply_small(rows[k, token], h, u)
                if additive.shape[1] > 0:
                    _add(additive[k, token], u)
                ends = t + 1 == num_positions or tokens[k, s, t + 1] >= num_readable
                normalise(u, after, last if ends else each, its_divisors[t * keep], large)
                h = after
            _copy(h, final[k, s])


@jit
def _backward(
    rows, additive, tokens, each, last, large, buffers, along, states, divisors, g_final, g_rows, g_h0, g_additive
):  # fmt: skip
    num_trials, num_samples, num_positions = tokens.shape
    num_readable = rows.shape[1]
    g, g_u = buffers[0], buffers[1]
    for k in range(num_trials):
        for s in range(num_samples):
            _copy(g_final[k, s], g)
            length = 0
            while length < num_positions and tokens[k, s, length] < num_readable:
                length += 1
            for t in range(length - 1, -1, -1):
                token = tokens[k, s, t]
                kind = last if t == length - 1 else each
                normalise_back(g, states[k, s, t + 1], kind, divisors[k, s, t], large, along, g_u)
                if additive.shape[1] > 0:
                    _add(g_u, g_additive[k, token])
                if large:
                    apply_large_back(rows[k, token], states[k, s, t], g_u, g, g_rows[k, token])
                else:
                    apply_small_back(rows[k, token], states[k, s, t], g_u, g, g_rows[k, token])
            _add(g, g_h0[k])


@jit
def _copy(x, to):
    flat, flat_to = x.reshape(-1), to.reshape(-1)
    for m in range(len(flat)):
        flat_to[m] = flat[m]


@jit
def _add(x, to):
    flat, flat_to = x.reshape(-1), to.reshape(-1)
    for m in range(len(flat)):
        flat_to[m] += flat[m]
