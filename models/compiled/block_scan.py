"""Compiled scan of block-diagonal transitions, over all samples of a stack of trials. Twin: `recurrence/blocks.py`.

The kernels read tables in one of two layouts. For small blocks it is that of `recurrence/blocks.py`. For large blocks,
states and tables are transposed, so that the components of a block are adjacent. Padding is not read at all.
"""

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.jit import inlined, jit
from orch.models.compiled.large_blocks import add_large_products, apply_large, apply_large_back
from orch.models.compiled.normalisation import kinds_of, normalise, normalise_back, num_divisors
from orch.models.compiled.small_blocks import add_small_products, apply_small, apply_small_back
from orch.models.recurrence.normalisation import Normalisation

_LARGEST_SMALL_BLOCK, _FEW_BLOCKS = 8, 8
_SAMPLES_IN_TURN = 8
"""Samples that take turns at every position, so that the processor works on one while another waits for a result."""


def components_adjacent(b: int, n: int) -> bool:
    """Return whether blocks are so large, or so few, that a block's components should be adjacent."""
    return b > _LARGEST_SMALL_BLOCK or (b > 2 and n < _FEW_BLOCKS)


class BlockScan:
    """One pass over a batch: `forward`, then `backward` if states were kept."""

    def __init__(
        self,
        table_KRbbn: Tensor,
        tokens_KBT: Tensor,
        h0_KH: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None = None,
    ):
        K, _, b, _, n = self._shape = table_KRbbn.shape
        self._large = components_adjacent(b, n)
        self._state = (n, b) if self._large else (b, n)
        self._tokens = tokens_KBT.contiguous().numpy()
        self._each, self._last = kinds_of(normalisation, every_step)
        self._rows = _array(table_KRbbn.permute(0, 1, 4, 2, 3) if self._large else table_KRbbn)
        self._h0 = self._enter(h0_KH)
        no_terms = np.empty((K, 0, *self._state), self._rows.dtype)
        self._additive = no_terms if additive_KRH is None else self._enter(additive_KRH)

    def forward(self, keep: bool) -> Tensor:
        """Return the final states, (K, B, H). Keep what `backward` needs if asked to."""
        K, B, T = self._tokens.shape
        divisors = num_divisors(self._last, self._shape[4])
        self._states = self._empty(*((K, B, T + 1) if keep else (1, _SAMPLES_IN_TURN, 2)), *self._state)
        self._divisors = self._empty(*((K, B, T) if keep else (1, 1, 1)), divisors)
        final, u = self._empty(K, B, *self._state), self._empty(*self._state)
        _forward(
            *(
                self._rows,
                _flat(self._additive),
                self._tokens,
                _flat(self._h0),
                self._each,
                self._last,
                self._large,
                keep,
            ),
            *(u, _flat(u), self._states, _flat(self._states), self._divisors, _flat(final)),
        )
        return self._leave(final)

    def backward(self, g_KBH: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the gradients of the table, of h_0 and of the additive term."""
        back = _array(torch.from_numpy(self._rows).transpose(-1, -2)) if self._large else self._rows
        _, B, T = self._tokens.shape
        g_rows, g_h0, g_additive = (np.zeros_like(x) for x in (self._rows, self._h0, self._additive))
        gradients = self._empty(1, B, T, *self._state)
        g, along = self._empty(_SAMPLES_IN_TURN, *self._state), np.empty_like(self._divisors[0, 0, 0])
        _backward_in_turn(
            *(back, self._tokens, self._each, self._last, self._large, g, _flat(g), along),
            *(self._states, _flat(self._states), self._divisors, _flat(self._enter(g_KBH))),
            *(gradients, _flat(gradients), np.zeros_like(g[0])),
            *(np.empty((self._shape[1], B * T), np.int64), np.empty(self._shape[1], np.int64)),
            *(_flat(g_h0), g_rows, _flat(g_additive)),
        )
        g_table = torch.from_numpy(g_rows)
        if self._large:
            g_table = g_table.permute(0, 1, 3, 4, 2)
        return g_table, self._leave(g_h0), self._leave(g_additive) if g_additive.size else None

    def _empty(self, *shape: int) -> np.ndarray:
        return np.empty(shape, self._rows.dtype)

    def _enter(self, x: Tensor) -> np.ndarray:
        """Return states as matrices, in the layout of the kernels."""
        b, n = self._shape[3:]
        x = torch.unflatten(x, -1, (b, n))
        return _array(x.transpose(-1, -2) if self._large else x)

    def _leave(self, x: np.ndarray) -> Tensor:
        states = torch.from_numpy(x)
        return (states.transpose(-1, -2) if self._large else states).flatten(-2)


def _flat(states: np.ndarray) -> np.ndarray:
    """View states as vectors."""
    return states.reshape(*states.shape[:-2], -1) if states.size else states.reshape(*states.shape[:-2], 0)


def _array(x: Tensor) -> np.ndarray:
    array: np.ndarray = x.detach().contiguous().numpy()
    return array


@jit
def _forward(rows, additive, tokens, h0, each, last, large, keep, u, flat_u, states, flat_states, divisors, final):
    """Scan forwards. `each` is the normalisation of every step, `last` that of a sample's last one."""
    num_trials, num_samples, num_positions = tokens.shape
    num_readable = rows.shape[1]
    for k in range(num_trials):
        for start in range(0, num_samples, _SAMPLES_IN_TURN):
            stop = min(start + _SAMPLES_IN_TURN, num_samples)
            place = 0 if keep else start
            for s in range(start, stop):
                _copy(h0[k], flat_states[k * keep, s - place, 0])
            for t in range(num_positions):
                before, after = (t, t + 1) if keep else (t % 2, (t + 1) % 2)
                for s in range(start, stop):
                    token = tokens[k, s, t]
                    if token >= num_readable:
                        continue
                    h, new = states[k * keep, s - place, before], flat_states[k * keep, s - place, after]
                    if large:
                        apply_large(rows[k, token], h, u)
                    else:
                        apply_small(rows[k, token], h, u)
                    if additive.shape[1] > 0:
                        _add(additive[k, token], flat_u)
                    ends = t + 1 == num_positions or tokens[k, s, t + 1] >= num_readable
                    divided = divisors[k * keep, s * keep, t * keep]
                    normalise(flat_u, new, last if ends else each, divided, large, len(u))
                    if ends:
                        _copy(new, final[k, s])


@jit
def _backward_in_turn(
    rows, tokens, each, last, large, buffers, flat_buffers, along, states, flat_states, divisors, g_final,
    gradients, flat_gradients, nothing, places, counts, g_h0, g_rows, g_additive,
):  # fmt: skip
    """Scan backwards and sum by token, trial by trial: the memory of `gradients` serves all of them."""
    for k in range(len(tokens)):
        one = slice(k, k + 1)
        _backward(
            rows[one], tokens[one], each, last, large, buffers, flat_buffers, along,
            flat_states[one], divisors[one], g_final[one], gradients, flat_gradients, g_h0[one],
        )  # fmt: skip
        _sum_by_token(
            tokens[one], large, states[one], gradients, flat_gradients, nothing, places, counts,
            g_rows[one], g_additive[one],
        )  # fmt: skip


@jit
def _backward(
    rows, tokens, each, last, large, buffers, flat_buffers, along,
    states, divisors, g_final, gradients, flat_gradients, g_h0,
):  # fmt: skip
    """Scan backwards: write the gradient before each normalisation to `gradients`. `rows` are transposed if large."""
    num_trials, num_samples, num_positions = tokens.shape
    num_readable = rows.shape[1]
    for k in range(num_trials):
        for start in range(0, num_samples, _SAMPLES_IN_TURN):
            stop = min(start + _SAMPLES_IN_TURN, num_samples)
            for s in range(start, stop):
                _copy(g_final[k, s], flat_buffers[s - start])
            for t in range(num_positions - 1, -1, -1):
                for s in range(start, stop):
                    token = tokens[k, s, t]
                    if token >= num_readable:
                        continue
                    ends = t + 1 == num_positions or tokens[k, s, t + 1] >= num_readable
                    g, g_u = buffers[s - start], gradients[k, s, t]
                    kind = last if ends else each
                    normalise_back(
                        flat_buffers[s - start], states[k, s, t + 1], kind, divisors[k, s, t], large, len(g), along,
                        flat_gradients[k, s, t],
                    )  # fmt: skip
                    if large:
                        apply_large_back(rows[k, token], g_u, g)
                    else:
                        apply_small_back(rows[k, token], g_u, g)
            for s in range(start, stop):
                _add(flat_buffers[s - start], g_h0[k])


@jit
def _sum_by_token(tokens, large, states, gradients, flat_gradients, nothing, places, counts, g_rows, g_additive):
    """Sum the outer products of gradients and earlier states by token, four positions at a time."""
    num_trials, num_samples, num_positions = tokens.shape
    for k in range(num_trials):
        for r in range(len(counts)):
            counts[r] = 0
        for s in range(num_samples):
            for t in range(num_positions):
                token = tokens[k, s, t]
                if token < len(counts):
                    places[token, counts[token]] = s * num_positions + t
                    counts[token] += 1
                    if g_additive.shape[1] > 0:
                        _add(flat_gradients[k, s, t], g_additive[k, token])
        for r in range(len(counts)):
            for first in range(0, counts[r], 4):
                s_0, t_0 = divmod(places[r, first], num_positions)
                s_1, t_1 = divmod(places[r, min(first + 1, counts[r] - 1)], num_positions)
                s_2, t_2 = divmod(places[r, min(first + 2, counts[r] - 1)], num_positions)
                s_3, t_3 = divmod(places[r, min(first + 3, counts[r] - 1)], num_positions)
                g_0 = gradients[k, s_0, t_0]
                g_1 = gradients[k, s_1, t_1] if first + 1 < counts[r] else nothing
                g_2 = gradients[k, s_2, t_2] if first + 2 < counts[r] else nothing
                g_3 = gradients[k, s_3, t_3] if first + 3 < counts[r] else nothing
                h_0, h_1, h_2, h_3 = states[k, s_0, t_0], states[k, s_1, t_1], states[k, s_2, t_2], states[k, s_3, t_3]
                if large:
                    add_large_products(g_0, g_1, g_2, g_3, h_0, h_1, h_2, h_3, g_rows[k, r])
                else:
                    add_small_products(g_0, g_1, g_2, g_3, h_0, h_1, h_2, h_3, g_rows[k, r])


@inlined
def _copy(x, to):
    for m in range(len(x)):
        to[m] = x[m]


@inlined
def _add(x, to):
    for m in range(len(x)):
        to[m] += x[m]
