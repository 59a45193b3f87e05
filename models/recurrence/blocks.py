"""Block-diagonal transitions: h'_i = sum_j A(x)_ij h_j within each block. One block is the full bilinear model.

A table holds one transition per token, `table_KRbbn`: entry (i, j) of block number n. A state's entry i * n + j is
component i of block j, so that the blocks lie next to each other in memory.
"""

import torch
from torch import Tensor

from models.recurrence.normalisation import Normalisation
from models.recurrence.scan import one_hot, scan, table_rows

LARGEST_ELEMENTWISE_BLOCK = 8
_CHUNK_ELEMENTS = 1 << 20


def block_scan(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    additive_KRH: Tensor | None = None,
    transition_type: type | None = None,
) -> Tensor:
    """Final states. There are three ways to apply a table, of equal result: block and device decide the fastest."""
    if transition_type is None:
        if table_KRbbn.shape[2] <= LARGEST_ELEMENTWISE_BLOCK:
            transition_type = ElementwiseBlocks
        else:
            transition_type = GroupedBlocks if table_KRbbn.device.type == "cpu" else GatheredBlocks
    return scan(transition_type, normalisation, tokens_KBT, h0_KH, additive_KRH, table_KRbbn)


def _with_identity(table_KRbbn: Tensor) -> Tensor:
    """One more row for padding, flattened over trials and tokens: (K * (R + 1), b, b, n)."""
    K, _, b, _, n = table_KRbbn.shape
    identity = torch.eye(b, dtype=table_KRbbn.dtype, device=table_KRbbn.device)[None, None, :, :, None]
    return torch.cat([table_KRbbn, identity.expand(K, 1, b, b, n)], dim=1).flatten(0, 1)


class ElementwiseBlocks:
    """Small blocks: look the transitions up for a few positions at a time, multiply and add entry by entry."""

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._tokens_KBT = tokens_KBT
        self._K, self._R, self._b, _, self._n = table_KRbbn.shape
        self._rows_KTB = table_rows(tokens_KBT, self._R + 1)
        self._flat = _with_identity(table_KRbbn)
        # By the size of one trial, so that the order of summation does not depend on how many are stacked.
        per_position = tokens_KBT.shape[1] * self._b * self._b * self._n
        self._chunk = max(1, _CHUNK_ELEMENTS // per_position)
        self._loaded: tuple[int, Tensor] | None = None

    def _at(self, t: int) -> Tensor:
        """A(x_t) for every sample: (K, B, b, b, n)."""
        start = t - t % self._chunk
        if self._loaded is None or self._loaded[0] != start:
            rows = self._rows_KTB[:, start : start + self._chunk]
            gathered = self._flat.index_select(0, rows.flatten()).view(*rows.shape, self._b, self._b, self._n)
            self._loaded = start, gathered
        return self._loaded[1][:, t - start]

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        a = self._at(t)
        h = h_KBH.unflatten(-1, (self._b, self._n))
        u = a[..., 0, :] * h[..., :1, :]
        for j in range(1, self._b):
            u.addcmul_(a[..., j, :], h[..., j : j + 1, :])
        return u.flatten(-2)

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        a = self._at(t)
        g = g_KBH.unflatten(-1, (self._b, self._n))
        before = a[..., 0, :, :] * g[..., :1, :]
        for i in range(1, self._b):
            before.addcmul_(a[..., i, :, :], g[..., i : i + 1, :])
        return before.flatten(-2)

    def gradients(self, h_KTBH: Tensor, g_KTBH: Tensor) -> tuple[Tensor, ...]:
        h, g = (x.unflatten(-1, (self._b, self._n)) for x in (h_KTBH, g_KTBH))
        which_KRP = one_hot(self._tokens_KBT, self._R, g.dtype)
        batch = h.shape[2]
        total = h.new_zeros(self._K, self._R, self._b * self._b * self._n)
        for start in range(0, h.shape[1], self._chunk):
            part = slice(start, start + self._chunk)
            outer = (g[:, part, :, :, None] * h[:, part, :, None]).flatten(1, 2).flatten(2)
            total.baddbmm_(which_KRP[..., start * batch : (start + self._chunk) * batch], outer)
        return (total.view(self._K, self._R, self._b, self._b, self._n),)


class GroupedBlocks:
    """Large blocks on the CPU: samples sorted by token, one matmul per token at each position. Padding costs nothing.

    Every matmul belongs to one trial, so a trial's arithmetic is the same alone and in a stack.
    """

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        K, B, T = tokens_KBT.shape
        self._K, self._R, self._b, _, self._n = table_KRbbn.shape
        self._matrices = table_KRbbn.flatten(0, 1).permute(0, 3, 1, 2).contiguous()
        num_groups = self._K * self._R
        padding = tokens_KBT.transpose(1, 2) == self._R
        groups_KTB = table_rows(tokens_KBT, self._R).masked_fill(padding, num_groups)
        groups_TN = groups_KTB.transpose(0, 1).reshape(T, K * B)
        self._order_TN = groups_TN.argsort(dim=1, stable=True)
        counts = groups_TN.new_zeros(T, num_groups + 1).scatter_add_(1, groups_TN, torch.ones_like(groups_TN))
        self._segments = [_segments(row) for row in counts[:, :num_groups].tolist()]
        # The same once for all positions: rows of (K, T, B), sorted by group.
        flat = groups_KTB.reshape(-1)
        self._order_all = flat.argsort(stable=True)
        self._segments_all = _segments(counts[:, :num_groups].sum(0).tolist())

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        return self._apply(t, h_KBH, self._matrices.transpose(2, 3))

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        return self._apply(t, g_KBH, self._matrices)

    def _apply(self, t: int, x_KBH: Tensor, matrices_Gnbb: Tensor) -> Tensor:
        order = self._order_TN[t]
        rows = x_KBH.reshape(len(order), -1)
        sorted_rows = rows.index_select(0, order)
        result = sorted_rows.clone()
        for group, start, stop in self._segments[t]:
            if self._n == 1:
                torch.mm(sorted_rows[start:stop], matrices_Gnbb[group, 0], out=result[start:stop])
            else:
                product = torch.bmm(self._by_block(sorted_rows[start:stop]), matrices_Gnbb[group])
                self._by_block(result[start:stop]).copy_(product)
        return torch.empty_like(result).index_copy_(0, order, result).view(x_KBH.shape)

    def gradients(self, h_KTBH: Tensor, g_KTBH: Tensor) -> tuple[Tensor, ...]:
        h, g = (x.flatten(0, 2).index_select(0, self._order_all) for x in (h_KTBH, g_KTBH))
        total = self._matrices.new_zeros(self._matrices.shape)
        for group, start, stop in self._segments_all:
            g_group, h_group = self._by_block(g[start:stop]), self._by_block(h[start:stop])
            torch.bmm(g_group.transpose(1, 2), h_group, out=total[group])
        return (total.permute(0, 2, 3, 1).unflatten(0, (self._K, self._R)),)

    def _by_block(self, rows: Tensor) -> Tensor:
        """(n, rows, b), as a view."""
        return rows.unflatten(-1, (self._b, self._n)).permute(2, 0, 1)


def _segments(counts: list[int]) -> list[tuple[int, int, int]]:
    """(group, start, stop) of the groups that have members."""
    found, start = [], 0
    for group, count in enumerate(counts):
        if count:
            found.append((group, start, start + count))
        start += count
    return found


class GatheredBlocks:
    """Large blocks on a GPU: every sample's transition is gathered into a batched matmul of static shape, so that no
    step waits for the host."""

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._tokens_KBT = tokens_KBT
        self._K, self._R, self._b, _, self._n = table_KRbbn.shape
        self._rows_KTB = table_rows(tokens_KBT, self._R + 1)
        self._matrices = _with_identity(table_KRbbn).permute(0, 3, 1, 2).contiguous()

    def _apply(self, t: int, x_KBH: Tensor, transpose: bool) -> Tensor:
        K, B, H = x_KBH.shape
        matrices = self._matrices.index_select(0, self._rows_KTB[:, t].flatten()).flatten(0, 1)
        columns = x_KBH.reshape(K * B, self._b, self._n).transpose(1, 2).reshape(-1, self._b, 1)
        product = torch.bmm(matrices.transpose(1, 2) if transpose else matrices, columns)
        return product.view(K * B, self._n, self._b).transpose(1, 2).reshape(K, B, H)

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        return self._apply(t, h_KBH, transpose=False)

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        return self._apply(t, g_KBH, transpose=True)

    def gradients(self, h_KTBH: Tensor, g_KTBH: Tensor) -> tuple[Tensor, ...]:
        def by_block(x_KTBH: Tensor) -> Tensor:
            return x_KTBH.flatten(1, 2).unflatten(-1, (self._b, self._n)).permute(0, 3, 1, 2)

        h_KnPb, g_KnPb = by_block(h_KTBH), by_block(g_KTBH)
        which_KRP = one_hot(self._tokens_KBT, self._R, g_KnPb.dtype)
        # A loop over the vocabulary, whose size is static: masking costs a pass per token and waits for nothing.
        per_token = [(g_KnPb * which_KRP[:, v, None, :, None]).transpose(2, 3) @ h_KnPb for v in range(self._R)]
        return (torch.stack(per_token, dim=1).permute(0, 1, 3, 4, 2),)
