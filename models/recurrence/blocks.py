"""Block-diagonal transitions: h'_i = sum_j A(x)_ij h_j within each block. One block is the full bilinear model.

A table holds one transition per token, `table_KRbbn`: entry (i, j) of block number n. A state's entry i * n + j is
component i of block j. This suits small blocks, because the blocks then lie next to each other in memory. For large
blocks the state is transposed before the first position and after the last, so that a block's components do.
"""

import torch
from torch import Tensor

from orch.models.recurrence.large_blocks import GatheredBlocks, GroupedBlocks, SummedBlocks
from orch.models.recurrence.normalisation import Normalisation
from orch.models.recurrence.scan import Transition, scan
from orch.models.recurrence.token_lookup import TokenSums, on_host, table_rows, with_identity

LARGEST_ELEMENTWISE_BLOCK = 4
LARGEST_SUMMED_BLOCK = 128
_CHUNK_ELEMENTS = 1 << 17


def block_scan(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    additive_KRH: Tensor | None = None,
    transition_type: type[Transition] | None = None,
    read_KBP: Tensor | None = None,
) -> Tensor:
    """Return the final states, or those after the positions `read_KBP`, (K, BP, H).

    Of four ways to apply a table, the fastest for the block size and the device is used.
    """
    b = table_KRbbn.shape[2]
    if transition_type is None:
        if b <= LARGEST_ELEMENTWISE_BLOCK:
            transition_type = ElementwiseBlocks
        elif on_host(table_KRbbn):
            transition_type = SummedBlocks if b <= LARGEST_SUMMED_BLOCK else GroupedBlocks
        else:
            transition_type = GatheredBlocks
    if transition_type is ElementwiseBlocks or b == h0_KH.shape[-1]:
        return scan(transition_type, normalisation, tokens_KBT, h0_KH, additive_KRH, table_KRbbn, read_KBP=read_KBP)
    additive_KRH = None if additive_KRH is None else _turn(additive_KRH, b)
    turned = normalisation.turned(), tokens_KBT, _turn(h0_KH, b), additive_KRH
    h_KBH = scan(transition_type, *turned, table_KRbbn, read_KBP=read_KBP)
    return _turn(h_KBH, h_KBH.shape[-1] // b)


def _turn(x: Tensor, outer: int) -> Tensor:
    """View the last axis as a matrix of `outer` rows and transpose it."""
    return torch.unflatten(x, -1, (outer, -1)).transpose(-1, -2).flatten(-2)


class ElementwiseBlocks:
    """Applies small blocks: looks transitions up for a few positions at a time, multiplies and adds entry by entry."""

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._R, self._b, _, self._n = table_KRbbn.shape[1:]
        self._tokens_KBT, self._flat = tokens_KBT, with_identity(table_KRbbn)
        self._rows_TKB = table_rows(tokens_KBT, self._R + 1)
        # Depends on the size of one trial only, so that a trial's arithmetic is the same alone and in a stack.
        self._chunk = max(1, _CHUNK_ELEMENTS // (tokens_KBT.shape[1] * self._flat[0].numel()))
        self._loaded: tuple[int, Tensor] | None = None

    def _at(self, t: int) -> Tensor:
        """Return A(x_t) for every sample: (K, B, b, b, n)."""
        start = t - t % self._chunk
        if self._loaded is None or self._loaded[0] != start:
            rows = self._rows_TKB[start : start + self._chunk]
            self._loaded = start, self._flat.index_select(0, rows.view(-1)).view(*rows.shape, *self._flat.shape[1:])
        return self._loaded[1][t - start]

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        a = self._at(t)
        h = torch.unflatten(h_KBH, -1, (self._b, self._n))
        u = a[..., 0, :] * h[..., :1, :]
        for j in range(1, self._b):
            u.addcmul_(a[..., j, :], h[..., j : j + 1, :])
        return u.flatten(-2)

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        a = self._at(t)
        g = torch.unflatten(g_KBH, -1, (self._b, self._n))
        before = a[..., 0, :, :] * g[..., :1, :]
        for i in range(1, self._b):
            before.addcmul_(a[..., i, :, :], g[..., i : i + 1, :])
        return before.flatten(-2)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        h, g = (torch.unflatten(x, -1, (self._b, self._n)) for x in (h_TKBH, g_TKBH))
        sums = TokenSums(self._tokens_KBT, self._R)
        for start in range(0, len(h), self._chunk):
            part = slice(start, start + self._chunk)
            sums.add(start, (g[part, ..., :, None, :] * h[part, ..., None, :, :]).flatten(3))
        return (torch.unflatten(sums.total(), -1, (self._b, self._b, self._n)),)
