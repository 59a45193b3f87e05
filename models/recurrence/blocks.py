"""Block-diagonal transitions: h'_i = sum_j A(x)_ij h_j within each block. One block is the full bilinear model.

A table holds one transition per token, `table_KRbbn`: entry (i, j) of block number n. A state's entry i * n + j is
component i of block j. That suits small blocks, for they lie next to each other in memory; large ones are turned around
before the first position and after the last, so that a block's components do.
"""

import torch
from torch import Tensor

from models.recurrence.normalisation import Normalisation
from models.recurrence.scan import scan
from models.recurrence.tokens import TokenSums, on_host, table_rows

LARGEST_ELEMENTWISE_BLOCK = 4
LARGEST_SUMMED_BLOCK = 128
_CHUNK_ELEMENTS = 1 << 17


def block_scan(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    additive_KRH: Tensor | None = None,
    transition_type: type | None = None,
) -> Tensor:
    """Final states. There are four ways to apply a table, of equal result: block and device decide the fastest."""
    b = table_KRbbn.shape[2]
    if transition_type is None:
        if b <= LARGEST_ELEMENTWISE_BLOCK:
            transition_type = ElementwiseBlocks
        elif on_host(table_KRbbn):
            transition_type = SummedBlocks if b <= LARGEST_SUMMED_BLOCK else GroupedBlocks
        else:
            transition_type = GatheredBlocks
    if transition_type is ElementwiseBlocks or b == h0_KH.shape[-1]:
        return scan(transition_type, normalisation, tokens_KBT, h0_KH, additive_KRH, table_KRbbn)
    additive_KRH = None if additive_KRH is None else _turn(additive_KRH, b)
    h_KBH = scan(transition_type, normalisation.turned(), tokens_KBT, _turn(h0_KH, b), additive_KRH, table_KRbbn)
    return _turn(h_KBH, h_KBH.shape[-1] // b)


def _turn(x: Tensor, outer: int) -> Tensor:
    """The last axis as a matrix of `outer` rows, transposed."""
    return x.unflatten(-1, (outer, -1)).transpose(-1, -2).flatten(-2)


def _with_identity(table_KRbbn: Tensor) -> Tensor:
    """One more row for padding, flattened over trials and tokens: (K * (R + 1), b, b, n)."""
    K, _, b, _, n = table_KRbbn.shape
    identity = torch.eye(b, dtype=table_KRbbn.dtype, device=table_KRbbn.device)[None, None, :, :, None]
    return torch.cat([table_KRbbn, identity.expand(K, 1, b, b, n)], dim=1).flatten(0, 1)


class ElementwiseBlocks:
    """Small blocks: look the transitions up for a few positions at a time, multiply and add entry by entry."""

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._R, self._b, _, self._n = table_KRbbn.shape[1:]
        self._tokens_KBT, self._flat = tokens_KBT, _with_identity(table_KRbbn)
        self._rows_TKB = table_rows(tokens_KBT, self._R + 1)
        # By the size of one trial, so that what is done does not depend on how many are stacked.
        self._chunk = max(1, _CHUNK_ELEMENTS // (tokens_KBT.shape[1] * self._flat[0].numel()))
        self._loaded: tuple[int, Tensor] | None = None

    def _at(self, t: int) -> Tensor:
        """A(x_t) for every sample: (K, B, b, b, n)."""
        start = t - t % self._chunk
        if self._loaded is None or self._loaded[0] != start:
            rows = self._rows_TKB[start : start + self._chunk]
            self._loaded = start, self._flat.index_select(0, rows.view(-1)).view(*rows.shape, *self._flat.shape[1:])
        return self._loaded[1][t - start]

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

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        h, g = (x.unflatten(-1, (self._b, self._n)) for x in (h_TKBH, g_TKBH))
        sums = TokenSums(self._tokens_KBT, self._R)
        for start in range(0, len(h), self._chunk):
            part = slice(start, start + self._chunk)
            sums.add(start, (g[part, ..., :, None, :] * h[part, ..., None, :, :]).flatten(3))
        return (sums.total().unflatten(-1, (self._b, self._b, self._n)),)


class SummedBlocks:
    """Middling blocks on the CPU: a new state is the sum of its transition's columns, each times one old component.

    torch's embedding_bag takes such weighted sums of rows for all samples at once, reading them where they lie. Every
    sample has its own sum, so a trial's arithmetic is the same alone and in a stack.
    """

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._b, self._n = table_KRbbn.shape[3:]
        flat = _with_identity(table_KRbbn)
        self._columns, self._rows = (flat.permute(0, 3, *order).reshape(-1, self._b) for order in ((2, 1), (1, 2)))
        H = self._b * self._n
        rows_TKB = table_rows(tokens_KBT, table_KRbbn.shape[1] + 1)
        self._first_TKB1 = (rows_TKB * H).int().unsqueeze(-1)
        self._component_H = torch.arange(H, dtype=torch.int32)
        self._sums_begin = torch.arange(0, rows_TKB[0].numel() * H, self._b, dtype=torch.int32)
        self._groups = _Groups(tokens_KBT, table_KRbbn.shape)

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        return self._sum(t, self._columns, h_KBH)

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        return self._sum(t, self._rows, g_KBH)

    def _sum(self, t: int, lines: Tensor, weights_KBH: Tensor) -> Tensor:
        which = (self._first_TKB1[t] + self._component_H).view(-1)
        weights = weights_KBH.reshape(-1)
        sums, *_ = torch.embedding_bag(lines, which, self._sums_begin, mode=0, per_sample_weights=weights)
        return sums.view(weights_KBH.shape)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        return (self._groups.outer_products(g_TKBH, h_TKBH),)


class GroupedBlocks:
    """Large blocks on the CPU: samples sorted by token, one matmul per token at each position. Padding costs nothing.

    Every matmul belongs to one trial, so a trial's arithmetic is the same alone and in a stack.
    """

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._groups = _Groups(tokens_KBT, table_KRbbn.shape)
        self._matrices = table_KRbbn.flatten(0, 1).permute(0, 3, 1, 2).contiguous()
        groups_TN = self._groups.groups_TKB.flatten(1)
        self._order_TN = groups_TN.argsort(dim=1, stable=True)
        counts = groups_TN.new_zeros(len(groups_TN), len(self._matrices) + 1)
        self._sizes = counts.scatter_add_(1, groups_TN, torch.ones_like(groups_TN)).tolist()

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        return self._apply(t, h_KBH, self._matrices.transpose(2, 3))

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        return self._apply(t, g_KBH, self._matrices)

    def _apply(self, t: int, x_KBH: Tensor, matrices_Gnbb: Tensor) -> Tensor:
        order, sizes = self._order_TN[t], self._sizes[t]
        n, b = matrices_Gnbb.shape[1:3]
        sorted_rows = x_KBH.reshape(len(order), -1).index_select(0, order)
        result = sorted_rows.clone()
        parts = zip(matrices_Gnbb, *(rows.split(sizes) for rows in (sorted_rows, result)), strict=False)
        for matrices_nbb, rows, products in parts:
            if len(rows) and n == 1:
                torch.mm(rows, matrices_nbb[0], out=products)
            elif len(rows):
                by_block, products = (x.unflatten(-1, (n, b)).transpose(0, 1) for x in (rows, products))
                products.copy_(torch.bmm(by_block, matrices_nbb))
        return torch.empty_like(result).index_copy_(0, order, result).view(x_KBH.shape)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        return (self._groups.outer_products(g_TKBH, h_TKBH),)


class _Groups:
    """All positions grouped by trial and token, so that one matmul per group sums its outer products."""

    def __init__(self, tokens_KBT: Tensor, table_shape: torch.Size):
        self._table_shape = table_shape
        K, R = table_shape[:2]
        padding_TKB = (tokens_KBT == R).permute(2, 0, 1)
        self.groups_TKB = table_rows(tokens_KBT, R).masked_fill(padding_TKB, K * R)

    def outer_products(self, g_TKBH: Tensor, h_TKBH: Tensor) -> Tensor:
        """(K, R, b, b, n): the table's gradient."""
        K, R, b, _, n = self._table_shape
        groups_P = self.groups_TKB.flatten()
        order_P = groups_P.argsort(stable=True)
        sizes = groups_P.bincount(minlength=K * R + 1).tolist()
        g, h = (x.flatten(0, 2).index_select(0, order_P).unflatten(-1, (n, b)) for x in (g_TKBH, h_TKBH))
        total = g.new_zeros(K * R, n, b, b)
        # The last group is padding, and has no place in the total.
        parts = zip(total, g.permute(1, 2, 0).split(sizes, dim=2), h.transpose(0, 1).split(sizes, dim=1), strict=False)
        for total_nbb, g_nbP, h_nPb in parts:
            torch.bmm(g_nbP, h_nPb, out=total_nbb)
        return total.permute(0, 2, 3, 1).unflatten(0, (K, R))


class GatheredBlocks:
    """Large blocks on a GPU: every sample's transition is gathered into a batched matmul of static shape, so that no
    step waits for the host."""

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._tokens_KBT = tokens_KBT
        self._R, self._b, _, self._n = table_KRbbn.shape[1:]
        self._rows_TKB = table_rows(tokens_KBT, self._R + 1)
        self._matrices = _with_identity(table_KRbbn).permute(0, 3, 1, 2).contiguous()

    def _apply(self, t: int, x_KBH: Tensor, transpose: bool) -> Tensor:
        matrices = self._matrices.index_select(0, self._rows_TKB[t].view(-1)).flatten(0, 1)
        columns = x_KBH.reshape(-1, self._b, 1)
        return torch.bmm(matrices.transpose(1, 2) if transpose else matrices, columns).view(x_KBH.shape)

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        return self._apply(t, h_KBH, transpose=False)

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        return self._apply(t, g_KBH, transpose=True)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        def by_block(x_TKBH: Tensor) -> Tensor:
            return x_TKBH.transpose(0, 1).flatten(1, 2).unflatten(-1, (self._n, self._b)).transpose(1, 2)

        h_KnPb, g_KnPb = by_block(h_TKBH), by_block(g_TKBH)
        tokens_KP = self._tokens_KBT.transpose(1, 2).flatten(1)
        # A loop over the vocabulary, whose size is static: masking costs a pass per token and waits for nothing.
        masks = [(tokens_KP == token)[:, None, :, None] for token in range(self._R)]
        per_token = [(g_KnPb * mask).transpose(2, 3) @ h_KnPb for mask in masks]
        return (torch.stack(per_token, dim=1).permute(0, 1, 3, 4, 2),)
