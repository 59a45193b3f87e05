"""Tables with one row per token: the rows that a batch reads, a row for padding, and sums by token."""

import torch
from torch import Tensor


def on_host(x: Tensor) -> bool:
    """Return whether a tensor is on the CPU, where reading a size does not wait and the order of additions is fixed."""
    return x.device.type == "cpu"


def table_rows(tokens_KBT: Tensor, num_rows: int) -> Tensor:
    """Return the row of each token, (T, K, B), in a table with `num_rows` rows per trial, one trial after the other."""
    offset_K = torch.arange(len(tokens_KBT), device=tokens_KBT.device) * num_rows
    return (tokens_KBT.permute(2, 0, 1) + offset_K[:, None]).contiguous()


def one_hot(tokens_KBT: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    """Return (K, R, T, B): one where a token is that of the row, zero elsewhere.

    A matmul with it sums by token in a fixed order, which scattered additions on a GPU do not have.
    """
    row_R = torch.arange(num_rows, device=tokens_KBT.device)
    return (tokens_KBT.transpose(1, 2)[:, None] == row_R[:, None, None]).to(dtype)


def with_padding(table_KRG: Tensor) -> Tensor:
    """Return tables for `table_rows`, each with one more row of zeros for padding: (K * (R + 1), G)."""
    return torch.nn.functional.pad(table_KRG, (0, 0, 0, 1)).flatten(0, 1)


def with_identity(table_KRbbn: Tensor) -> Tensor:
    """Return tables of transitions, each with the identity for padding as one more row: (K * (R + 1), b, b, n)."""
    K, _, b, _, n = table_KRbbn.shape
    identity = torch.eye(b, dtype=table_KRbbn.dtype, device=table_KRbbn.device)[None, None, :, :, None]
    return torch.cat([table_KRbbn, identity.expand(K, 1, b, b, n)], dim=1).flatten(0, 1)


class TokenSums:
    """Sums vectors, one per sample and position, separately for every trial and token. Those of padding are dropped."""

    def __init__(self, tokens_KBT: Tensor, num_readable: int):
        self._tokens_KBT, self._R = tokens_KBT, num_readable
        self._total: Tensor | None = None

    def add(self, t: int, x_TKBG: Tensor) -> None:
        """Add the vectors of position t and of those that follow it."""
        T, K, _, G = x_TKBG.shape
        tokens_KBT = self._tokens_KBT[..., t : t + T]
        if self._total is None:
            self._total = x_TKBG.new_zeros(K, self._R + 1, G)
        if on_host(x_TKBG):
            rows_TKB = table_rows(tokens_KBT, self._R + 1)
            self._total.view(-1, G).index_add_(0, rows_TKB.view(-1), x_TKBG.reshape(-1, G))
        else:
            which_KRTB = one_hot(tokens_KBT, self._R + 1, x_TKBG.dtype)
            self._total.baddbmm_(which_KRTB.flatten(2), x_TKBG.transpose(0, 1).flatten(1, 2))

    def total(self) -> Tensor:
        """Return the sums: (K, R, G)."""
        assert self._total is not None
        return self._total[:, : self._R]
