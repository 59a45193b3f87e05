"""A batch as a nonlinear recurrence reads it: position by position, the samples that are over left out."""

import torch
from torch import Tensor

from models.recurrence.tokens import TokenSums, on_host, table_rows

_SAMPLES_AT_ONCE = 8


class Reading:
    """Sequences ordered from long to short, so that those still being read are the first `num_samples[t]` of a trial.

    A third of a batch is padding. The number of samples is a multiple of eight and large enough for every trial of the
    stack; a sample's product with a matrix does not depend on how many others are multiplied with it. Where sizes would
    have to be waited for, all samples are read to the end. What padding does to a state does not matter: each is taken
    where its sequence ends.
    """

    def __init__(self, tokens_KBT: Tensor, num_readable: int):
        K, B, T = tokens_KBT.shape
        self._position_T = torch.arange(T, device=tokens_KBT.device)
        self._length_KB = (tokens_KBT != num_readable).sum(2)
        self.num_samples = [B] * T
        self._place: Tensor | None = None
        if on_host(tokens_KBT):
            order_KB = self._length_KB.argsort(dim=1, descending=True, stable=True)
            tokens_KBT = tokens_KBT.gather(1, order_KB[..., None].expand(K, B, T))
            self._length_KB = self._length_KB.gather(1, order_KB)
            still_read = (self._length_KB.amax(0) > self._position_T[:, None]).sum(1).tolist()
            self.num_samples = [
                min(B, -(-count // _SAMPLES_AT_ONCE) * _SAMPLES_AT_ONCE) for count in still_read if count
            ]
            self._place = table_rows(order_KB.argsort(dim=1)[..., None], B).flatten()
        self._tokens_KBT, self._R = tokens_KBT, num_readable
        self._rows_TKB = table_rows(tokens_KBT, num_readable + 1)

    def look_up(self, t: int, table: Tensor) -> Tensor:
        """The rows of each sample's token at position t, (K, B, G), from a table `with_padding`."""
        rows_KB = self._rows_TKB[t, :, : self.num_samples[t]]
        return table.index_select(0, rows_KB.reshape(-1)).view(*rows_KB.shape, -1)

    def sums(self) -> TokenSums:
        return TokenSums(self._tokens_KBT, self._R)

    def is_last(self, dtype: torch.dtype) -> list[Tensor]:
        """For every position, (K, B, 1): one for samples that end there, zero for others."""
        is_last_TKB1 = (self._length_KB - 1 == self._position_T[:, None, None]).to(dtype).unsqueeze(-1)
        return [is_last[:, :num] for num, is_last in zip(self.num_samples, is_last_TKB1, strict=False)]

    def restore(self, x_KBH: Tensor) -> Tensor:
        """Samples back in the order they came in."""
        if self._place is None:
            return x_KBH
        return x_KBH.flatten(0, 1).index_select(0, self._place).view_as(x_KBH)
