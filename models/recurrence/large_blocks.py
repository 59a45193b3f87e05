"""Three ways to apply large blocks, between which `blocks.py` chooses. A block's components are adjacent in a state."""

import torch
from torch import Tensor

from orch.models.recurrence.token_lookup import table_rows, with_identity


class SummedBlocks:
    """Applies blocks of medium size on the CPU: a new state is a sum of columns, each times one old component.

    torch's embedding_bag computes such weighted sums for all samples at once, without a copy of the columns. Every
    sample has its own sum, so a trial's arithmetic is the same alone and in a stack.
    """

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._b, self._n = table_KRbbn.shape[3:]
        flat = with_identity(table_KRbbn)
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
    """Applies large blocks on the CPU: sorts samples by token for one matmul per token and position; skips padding.

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
        parts = zip(matrices_Gnbb, *(torch.split(rows, sizes) for rows in (sorted_rows, result)), strict=False)
        for matrices_nbb, rows, products in parts:
            if len(rows) and n == 1:
                torch.mm(rows, matrices_nbb[0], out=products)
            elif len(rows):
                by_block, products = (torch.unflatten(x, -1, (n, b)).transpose(0, 1) for x in (rows, products))
                products.copy_(torch.bmm(by_block, matrices_nbb))
        return torch.empty_like(result).index_copy_(0, order, result).view(x_KBH.shape)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        return (self._groups.outer_products(g_TKBH, h_TKBH),)


class _Groups:
    """Groups all positions by trial and token, so that one matmul per group sums its outer products."""

    def __init__(self, tokens_KBT: Tensor, table_shape: torch.Size):
        self._table_shape = table_shape
        K, R = table_shape[:2]
        padding_TKB = (tokens_KBT == R).permute(2, 0, 1)
        self.groups_TKB = table_rows(tokens_KBT, R).masked_fill(padding_TKB, K * R)

    def outer_products(self, g_TKBH: Tensor, h_TKBH: Tensor) -> Tensor:
        """Return the table's gradient: (K, R, b, b, n)."""
        K, R, b, _, n = self._table_shape
        groups_P = self.groups_TKB.flatten()
        order_P = groups_P.argsort(stable=True)
        sizes = groups_P.bincount(minlength=K * R + 1).tolist()
        rows = (x.flatten(0, 2).index_select(0, order_P) for x in (g_TKBH, h_TKBH))
        g, h = (torch.unflatten(x, -1, (n, b)) for x in rows)
        total = g.new_zeros(K * R, n, b, b)
        # The last group is padding, and has no place in the total.
        g_parts, h_parts = torch.split(g.permute(1, 2, 0), sizes, dim=2), torch.split(h.transpose(0, 1), sizes, dim=1)
        for total_nbb, g_nbP, h_nPb in zip(total, g_parts, h_parts, strict=False):
            torch.bmm(g_nbP, h_nPb, out=total_nbb)
        return torch.unflatten(total.permute(0, 2, 3, 1), 0, (K, R))


class GatheredBlocks:
    """Applies large blocks on a GPU: gathers every sample's transition for one batched matmul.

    Its shape is static, so that no step waits for the host.
    """

    def __init__(self, tokens_KBT: Tensor, table_KRbbn: Tensor):
        self._tokens_KBT = tokens_KBT
        self._R, self._b, _, self._n = table_KRbbn.shape[1:]
        self._rows_TKB = table_rows(tokens_KBT, self._R + 1)
        self._matrices = with_identity(table_KRbbn).permute(0, 3, 1, 2).contiguous()

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
            x_KPH = x_TKBH.transpose(0, 1).flatten(1, 2)
            return torch.unflatten(x_KPH, -1, (self._n, self._b)).transpose(1, 2)

        h_KnPb, g_KnPb = by_block(h_TKBH), by_block(g_TKBH)
        tokens_KP = self._tokens_KBT.transpose(1, 2).flatten(1)
        # A loop over the vocabulary, whose size is static: masking costs a pass per token and waits for nothing.
        masks = [(tokens_KP == token)[:, None, :, None] for token in range(self._R)]
        per_token = [(g_KnPb * mask).transpose(2, 3) @ h_KnPb for mask in masks]
        return (torch.stack(per_token, dim=1).permute(0, 1, 3, 4, 2),)
