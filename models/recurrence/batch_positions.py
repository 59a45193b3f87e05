"""A batch split into positions, for nonlinear recurrences. Samples that have ended are left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orch.models.places import add_at, states_at
from orch.models.recurrence.token_lookup import on_host, one_hot, table_rows

_SAMPLES_AT_ONCE = 8
_WORTH_ORDERING = 1 << 13


@dataclass(frozen=True, slots=True)
class Position:
    """The tokens at one position: those of the first samples of every trial."""

    num_samples: int
    rows_N: Tensor
    """Row of each sample's token in a table made by `with_padding`."""
    which_KRB: Tensor | None
    """`one_hot` of the tokens on a GPU; None on the CPU."""
    is_last_KB1: Tensor | None
    """One for samples that end here, zero for others; None if no sample ends here."""

    def look_up(self, table: Tensor) -> Tensor:
        """Return each sample's row of the table: (K, B, G)."""
        return table.index_select(0, self.rows_N).view(-1, self.num_samples, table.shape[1])

    def add_up(self, g_KBG: Tensor, g_table_KRG: Tensor) -> None:
        """Add the gradient of `look_up` to the table's gradient."""
        if self.which_KRB is not None:
            g_table_KRG.baddbmm_(self.which_KRB, g_KBG)
        else:
            g_table_KRG.flatten(0, 1).index_add_(0, self.rows_N, g_KBG.flatten(0, 1))

    def keep_last(self, h_KBH: Tensor, final_KBH: Tensor) -> None:
        """Copy the states of samples that end here into the final states."""
        if self.is_last_KB1 is not None:
            final_KBH[:, : self.num_samples].addcmul_(self.is_last_KB1, h_KBH)

    def join_last(self, g_KBH: Tensor | None, g_final_KBH: Tensor) -> Tensor:
        """Return the gradient at the states after this position.

        It comes from the next position, and for samples that end here from the final states.
        """
        if self.is_last_KB1 is None:
            return torch.zeros_like(g_final_KBH) if g_KBH is None else g_KBH
        joined_KBH = g_final_KBH[:, : self.num_samples] * self.is_last_KB1
        if g_KBH is not None:
            joined_KBH[:, : g_KBH.shape[1]] += g_KBH
        return joined_KBH


class BatchPositions:
    """The positions of a batch, one after the other.

    A third of a batch is padding. To leave it out, sequences are ordered from long to short, so that the unfinished
    ones are the first of every trial. Their number is rounded up to a multiple of eight and is the same for all trials.
    (A sample's product with a matrix does not depend on how many others are multiplied with it.) On a GPU, which would
    wait for these numbers, and for small weights, where ordering costs more than it saves, all samples are read to the
    end. Padding may change a state, because each final state is taken where its sequence ends.
    """

    def __init__(self, tokens_KBT: Tensor, num_readable: int, weights_KHG: Tensor, read_KBP: Tensor | None = None):
        """Split a batch of which the final states are wanted, or those after the positions `read_KBP`."""
        K, B, T = tokens_KBT.shape
        dtype = weights_KHG.dtype
        length_KB = (tokens_KBT != num_readable).sum(2)
        num_samples, num_ending, which_KRTB = [B] * T, [B] * T, None
        self._place: Tensor | None = None
        self._read_KBP = read_KBP
        if on_host(tokens_KBT):
            num_ending = length_KB.view(-1).bincount(minlength=T + 1)[1:].tolist()
            if weights_KHG[0].numel() >= _WORTH_ORDERING and read_KBP is None:
                length_KB, order_KB = length_KB.sort(dim=1, descending=True, stable=True)
                tokens_KBT = tokens_KBT.gather(1, order_KB[..., None].expand(K, B, T))
                self._place = table_rows(order_KB.argsort(dim=1)[..., None], B).flatten()
                longest = length_KB.amax(0).tolist()
                still_read = [sum(length > t for length in longest) for t in range(longest[0])]
                num_samples = [min(B, -(-count // _SAMPLES_AT_ONCE) * _SAMPLES_AT_ONCE) for count in still_read]
        else:
            which_KRTB = one_hot(tokens_KBT, num_readable + 1, dtype)
        rows_TKB = table_rows(tokens_KBT, num_readable + 1)
        end_T = torch.arange(1, T + 1, device=tokens_KBT.device)
        is_last_TKB1 = (length_KB == end_T[:, None, None]).to(dtype).unsqueeze(-1)
        self.positions = [
            Position(
                num_samples=count,
                rows_N=rows_TKB[t, :, :count].reshape(-1),
                which_KRB=None if which_KRTB is None else which_KRTB[:, :, t],
                is_last_KB1=is_last_TKB1[t, :, :count] if num_ending[t] and read_KBP is None else None,
            )
            for t, count in enumerate(num_samples)
        ]

    def choose(self, states: Sequence[Tensor], final_KBH: Tensor) -> Tensor:
        """Return the states that are wanted, given those after each position and the final ones."""
        return final_KBH if self._read_KBP is None else states_at(torch.stack(list(states)), self._read_KBP)

    def spread(self, g: Tensor) -> Tensor:
        """Return the gradient of `choose` for `join`: at the final states, or at those after each position."""
        if self._read_KBP is None:
            return g
        zeros_TKBH = g.new_zeros(len(self.positions), *self._read_KBP.shape[:2], g.shape[2])
        return add_at(zeros_TKBH, self._read_KBP, g)

    def join(self, t: int, g_KBH: Tensor | None, spread: Tensor) -> Tensor:
        """Return the gradient at the states after position t: from the next position, and where they are wanted."""
        if self._read_KBP is None:
            return self.positions[t].join_last(g_KBH, spread)
        return spread[t] if g_KBH is None else g_KBH + spread[t]

    def restore(self, x_KBH: Tensor) -> Tensor:
        """Return samples in their original order."""
        if self._place is None:
            return x_KBH
        return x_KBH.flatten(0, 1).index_select(0, self._place).view_as(x_KBH)
