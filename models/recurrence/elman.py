"""Elman recurrence: h_t = tanh(p(x_t) + W h_{t-1}), with one pre-activation p per token; h_0 = 0.

Padding is read like any token: what it does to a state that has been taken already does not matter.
"""

import torch
from torch import Tensor

from models.recurrence.tokens import TokenSums, last_positions, table_rows


def elman_scan(input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Final states, (K, B, H). Without gradients, no past state is kept."""
    if torch.is_grad_enabled() and (input_KRH.requires_grad or hidden_KHH.requires_grad):
        return _Elman.apply(input_KRH, hidden_KHH, tokens_KBT)
    cell = _Cell(input_KRH, hidden_KHH, tokens_KBT)
    h_KBH, final_KBH = cell.initial(), cell.initial()
    for t in range(tokens_KBT.shape[2]):
        h_KBH = cell.step(t, h_KBH)
        final_KBH.addcmul_(cell.last_TKB1[t], h_KBH)
    return final_KBH


class _Cell:
    """tanh(x) is taken as 2 sigmoid(2x) - 1, from doubled weights: on a CPU torch's tanh takes six times as long as its
    sigmoid."""

    def __init__(self, input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor):
        R = input_KRH.shape[1]
        self._table = torch.nn.functional.pad(2 * input_KRH, (0, 0, 0, 1)).flatten(0, 1)
        self._across = 2 * hidden_KHH.transpose(1, 2)
        self._rows_TKB = table_rows(tokens_KBT, R + 1)
        self._minus_one = -input_KRH.new_ones(())
        self.last_TKB1 = last_positions(tokens_KBT, R, input_KRH.dtype)

    def initial(self) -> Tensor:
        _, K, B = self._rows_TKB.shape
        return self._table.new_zeros(K, B, self._table.shape[1])

    def step(self, t: int, h_KBH: Tensor) -> Tensor:
        new_KBH = self._table.index_select(0, self._rows_TKB[t].view(-1)).view(h_KBH.shape)
        if t > 0:
            new_KBH.baddbmm_(h_KBH, self._across)
        return torch.add(self._minus_one, new_KBH.sigmoid_(), alpha=2, out=new_KBH)


class _Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_KRH, hidden_KHH, tokens_KBT):
        cell = _Cell(input_KRH, hidden_KHH, tokens_KBT)
        states, final = [cell.initial()], cell.initial()
        for t in range(tokens_KBT.shape[2]):
            states.append(cell.step(t, states[-1]))
            final.addcmul_(cell.last_TKB1[t], states[-1])
        ctx.parts = hidden_KHH, TokenSums(tokens_KBT, input_KRH.shape[1]), cell.last_TKB1, states
        return final

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_final):
        hidden_KHH, g_input, last_TKB1, states = ctx.parts
        g_h, g_across = torch.zeros_like(g_final), torch.zeros_like(hidden_KHH)
        for t in reversed(range(len(states) - 1)):
            before, h = states[t], states[t + 1]
            g_h.addcmul_(last_TKB1[t], g_final)
            g_u = torch.addcmul(g_h, g_h * h, h, value=-1)
            # Summed while at hand: a pack's gradients of all positions would not stay in the cache.
            g_input.add(t, g_u[None])
            if t > 0:
                g_across.baddbmm_(before.transpose(1, 2), g_u)
                g_h = torch.bmm(g_u, hidden_KHH)
        return g_input.total(), g_across.transpose(1, 2), None
