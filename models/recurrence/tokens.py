"""Where the tokens of a batch stand: rows into tables with one row per token, and sums by token."""

import torch
from torch import Tensor


def on_host(x: Tensor) -> bool:
    """Whether sizes read from a tensor cost nothing, and additions happen in order: on the CPU, not on a GPU."""
    return x.device.type == "cpu"


def table_rows(tokens_KBT: Tensor, num_rows: int) -> Tensor:
    """Rows (T, K, B) into a table of `num_rows` rows per trial, all trials' tables laid end to end."""
    offset_K = torch.arange(len(tokens_KBT), device=tokens_KBT.device) * num_rows
    return (tokens_KBT.permute(2, 0, 1) + offset_K[:, None]).contiguous()


def with_padding(table_KRG: Tensor) -> Tensor:
    """Tables for `table_rows`, with one more row of zeros for padding: (K * (R + 1), G)."""
    return torch.nn.functional.pad(table_KRG, (0, 0, 0, 1)).flatten(0, 1)


class TokenSums:
    """Adds up one vector per sample and position, apart for every trial and token; what padding gets is dropped."""

    def __init__(self, tokens_KBT: Tensor, num_readable: int):
        self._R = num_readable
        self._total: Tensor | None = None
        self._in_order = on_host(tokens_KBT)
        if self._in_order:
            self._rows_TKB = table_rows(tokens_KBT, num_readable + 1)
        else:
            # Scattered in no fixed order, sums would differ from run to run; a matmul's do not.
            token_R = torch.arange(num_readable + 1, device=tokens_KBT.device)
            self._which_TKRB = tokens_KBT.permute(2, 0, 1)[:, :, None] == token_R[:, None]

    def add(self, t: int, x_TKBG: Tensor) -> None:
        """The vectors of position t and however many follow it, of the first samples or of all."""
        T, K, B, G = x_TKBG.shape
        if self._total is None:
            self._total = x_TKBG.new_zeros(K, self._R + 1, G)
        if self._in_order:
            rows_TKB = self._rows_TKB[t : t + T, :, :B]
            self._total.view(-1, G).index_add_(0, rows_TKB.reshape(-1), x_TKBG.reshape(-1, G))
        else:
            for which_KRB, x_KBG in zip(self._which_TKRB[t : t + T, ..., :B], x_TKBG, strict=True):
                self._total.baddbmm_(which_KRB.to(x_KBG.dtype), x_KBG)

    def total(self) -> Tensor:
        """(K, R, G)."""
        assert self._total is not None
        return self._total[:, : self._R]
