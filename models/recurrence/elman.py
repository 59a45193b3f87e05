"""Elman recurrence: h_t = tanh(p(x_t) + W h_{t-1}), with one pre-activation p per token; h_0 = 0."""

import torch
from torch import Tensor

from models.recurrence.scan import one_hot, table_rows


def elman_scan(input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Final states, (K, B, H). Without gradients, no past state is kept."""
    if torch.is_grad_enabled() and (input_KRH.requires_grad or hidden_KHH.requires_grad):
        return _Elman.apply(input_KRH, hidden_KHH, tokens_KBT)
    cell = _Cell(input_KRH, hidden_KHH, tokens_KBT)
    h_KBH = cell.initial()
    for t in range(tokens_KBT.shape[2]):
        h_KBH = cell.step(t, h_KBH)
    return h_KBH


class _Cell:
    def __init__(self, input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor):
        K, R, H = input_KRH.shape
        self._table = torch.nn.functional.pad(input_KRH, (0, 0, 0, 1)).reshape(K * (R + 1), H)
        self._rows_KTB = table_rows(tokens_KBT, R + 1)
        self._across = hidden_KHH.transpose(1, 2)
        self.keep_KTB1 = (tokens_KBT == R).transpose(1, 2).unsqueeze(-1)

    def initial(self) -> Tensor:
        K, _, B = self._rows_KTB.shape
        return self._table.new_zeros(K, B, self._table.shape[1])

    def step(self, t: int, h_KBH: Tensor) -> Tensor:
        rows_KB = self._rows_KTB[:, t]
        new_KBH = self._table.index_select(0, rows_KB.flatten()).view(*rows_KB.shape, -1)
        new_KBH.baddbmm_(h_KBH, self._across).tanh_()
        return torch.where(self.keep_KTB1[:, t], h_KBH, new_KBH)


class _Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_KRH, hidden_KHH, tokens_KBT):
        cell = _Cell(input_KRH, hidden_KHH, tokens_KBT)
        states = [cell.initial()]
        for t in range(tokens_KBT.shape[2]):
            states.append(cell.step(t, states[-1]))
        ctx.parts = hidden_KHH, tokens_KBT, input_KRH.shape[1], cell.keep_KTB1, states
        return states[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_KBH):
        hidden_KHH, tokens_KBT, num_readable, keep_KTB1, states = ctx.parts
        K, B, T = tokens_KBT.shape
        gradients_KTBH = g_KBH.new_empty(K, T, B, g_KBH.shape[-1])
        for t in reversed(range(T)):
            y_KBH, keep_KB1 = states[t + 1], keep_KTB1[:, t]
            g_u = gradients_KTBH[:, t]
            torch.mul(g_KBH, 1 - y_KBH * y_KBH, out=g_u)
            g_u.masked_fill_(keep_KB1, 0)
            g_KBH = torch.baddbmm(g_KBH * keep_KB1, g_u, hidden_KHH)
        g_KPH = gradients_KTBH.flatten(1, 2)
        before_KPH = torch.stack(states[:-1], dim=1).flatten(1, 2)
        return one_hot(tokens_KBT, num_readable, g_KPH.dtype) @ g_KPH, g_KPH.transpose(1, 2) @ before_KPH, None
