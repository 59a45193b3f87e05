"""A batch as a nonlinear recurrence reads it: position by position, the samples that are over left out."""

from typing import NamedTuple

import torch
from torch import Tensor

from models.recurrence.tokens import TokenSums, on_host, table_rows

_SAMPLES_AT_ONCE = 8


class Position(NamedTuple):
    """What is read at one position: the first samples of every trial."""

    num_samples: int
    rows_N: Tensor
    """Where a table `with_padding` has each sample's token."""
    is_last_KB1: Tensor | None
    """One for samples that end here, zero for others; none if no sample does."""

    def look_up(self, table: Tensor) -> Tensor:
        """Each sample's row of the table: (K, B, G)."""
        return table.index_select(0, self.rows_N).view(-1, self.num_samples, table.shape[1])

    def keep_last(self, h_KBH: Tensor, final_KBH: Tensor) -> None:
        """Put the states of samples that end here among the final ones."""
        if self.is_last_KB1 is not None:
            final_KBH[:, : self.num_samples].addcmul_(self.is_last_KB1, h_KBH)

    def join_last(self, g_KBH: Tensor | None, g_final_KBH: Tensor) -> Tensor:
        """The gradient at this position's states: from the next position, and from the end for samples that end here."""
        if self.is_last_KB1 is None:
            assert g_KBH is not None, "the last position is one where samples end"
            return g_KBH
        joined_KBH = g_final_KBH[:, : self.num_samples] * self.is_last_KB1
        if g_KBH is not None:
            joined_KBH[:, : g_KBH.shape[1]] += g_KBH
        return joined_KBH


class Reading:
    """Sequences ordered from long to short, so that those still being read are the first of every trial.

    A third of a batch is padding. The number of samples is a multiple of eight and large enough for every trial of the
    stack; a sample's product with a matrix does not depend on how many others are multiplied with it. Where sizes would
    have to be waited for, all samples are read to the end. What padding does to a state does not matter: each is taken
    where its sequence ends.
    """

    def __init__(self, tokens_KBT: Tensor, num_readable: int, dtype: torch.dtype):
        K, B, T = tokens_KBT.shape
        length_KB = (tokens_KBT != num_readable).sum(2)
        num_samples, num_ending = [B] * T, [B] * T
        self._place: Tensor | None = None
        if on_host(tokens_KBT):
            length_KB, order_KB = length_KB.sort(dim=1, descending=True, stable=True)
            tokens_KBT = tokens_KBT.gather(1, order_KB[..., None].expand(K, B, T))
            self._place = table_rows(order_KB.argsort(dim=1)[..., None], B).flatten()
            num_ending = length_KB.flatten().bincount(minlength=T + 1)[1:].tolist()
            longest = length_KB.amax(0).tolist()
            still_read = [sum(length > t for length in longest) for t in range(longest[0])]
            num_samples = [min(B, -(-count // _SAMPLES_AT_ONCE) * _SAMPLES_AT_ONCE) for count in still_read]
        self._tokens_KBT, self._R = tokens_KBT, num_readable
        position_T = torch.arange(1, T + 1, device=tokens_KBT.device)
        is_last_TKB1 = (length_KB == position_T[:, None, None]).to(dtype).unsqueeze(-1)
        per_position = zip(
            num_samples, num_ending, table_rows(tokens_KBT, num_readable + 1), is_last_TKB1, strict=False
        )
        self.positions = [
            Position(count, rows_KB[:, :count].reshape(-1), is_last_KB1[:, :count] if ending else None)
            for count, ending, rows_KB, is_last_KB1 in per_position
        ]

    def sums(self) -> TokenSums:
        return TokenSums(self._tokens_KBT, self._R)

    def restore(self, x_KBH: Tensor) -> Tensor:
        """Samples back in the order they came in."""
        if self._place is None:
            return x_KBH
        return x_KBH.flatten(0, 1).index_select(0, self._place).view_as(x_KBH)
