"""LSTM recurrence in torch.nn.LSTM's gate order (i, f, g, o), with one pre-activation per token; h_0 = c_0 = 0.

Padding is read like any token: what it does to a state that has been taken already does not matter.
"""

import torch
from torch import Tensor

from models.recurrence.tokens import TokenSums, last_positions, table_rows


def lstm_scan(input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Final hidden states, (K, B, H); G = 4H gates. Without gradients, no past state is kept."""
    if torch.is_grad_enabled() and (input_KRG.requires_grad or hidden_KGH.requires_grad):
        return _LSTM.apply(input_KRG, hidden_KGH, tokens_KBT)
    cell = _Cell(input_KRG, hidden_KGH, tokens_KBT)
    h_KBH = c_KBH = cell.initial()
    final_KBH = cell.initial()
    for t in range(tokens_KBT.shape[2]):
        h_KBH, c_KBH, *_ = cell.step(t, h_KBH, c_KBH)
        final_KBH.addcmul_(cell.last_TKB1[t], h_KBH)
    return final_KBH


class _Cell:
    """All four gates go through one sigmoid: tanh(x) = 2 sigmoid(2x) - 1, so that of the candidate g is read from
    doubled weights. On a CPU torch's tanh takes six times as long as its sigmoid."""

    def __init__(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor):
        K, R, G = input_KRG.shape
        self._H = G // 4
        table_KRG = torch.nn.functional.pad(input_KRG, (0, 0, 0, 1))
        across_KHG = hidden_KGH.transpose(1, 2).clone(memory_format=torch.contiguous_format)
        for weights in (table_KRG, across_KHG):
            weights[..., 2 * self._H : 3 * self._H] *= 2
        self._table, self._across_KHG = table_KRG.flatten(0, 1), across_KHG
        self._rows_TKB = table_rows(tokens_KBT, R + 1)
        self._minus_one = -input_KRG.new_ones(())
        self.last_TKB1 = last_positions(tokens_KBT, R, input_KRG.dtype)

    def initial(self) -> Tensor:
        _, K, B = self._rows_TKB.shape
        return self._table.new_zeros(K, B, self._H)

    def step(self, t: int, h_KBH: Tensor, c_KBH: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The new hidden and cell state, then the activated gates and tanh(c) that backward wants."""
        gates_KBG = self._table.index_select(0, self._rows_TKB[t].view(-1)).view(*c_KBH.shape[:2], -1)
        if t > 0:
            gates_KBG.baddbmm_(h_KBH, self._across_KHG)
        i, f, g, o = gates_KBG.sigmoid_().chunk(4, dim=-1)
        torch.add(self._minus_one, g, alpha=2, out=g)
        new_c = torch.mul(f, c_KBH).addcmul_(i, g)
        tanh_c = torch.mul(new_c, 2).sigmoid_()
        torch.add(self._minus_one, tanh_c, alpha=2, out=tanh_c)
        return o * tanh_c, new_c, gates_KBG, tanh_c


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_KRG, hidden_KGH, tokens_KBT):
        cell = _Cell(input_KRG, hidden_KGH, tokens_KBT)
        h = c = cell.initial()
        final = cell.initial()
        steps = []
        for t in range(tokens_KBT.shape[2]):
            before = h, c
            h, c, gates, tanh_c = cell.step(t, h, c)
            final.addcmul_(cell.last_TKB1[t], h)
            steps.append((*before, gates, tanh_c, h))
        ctx.parts = hidden_KGH, TokenSums(tokens_KBT, input_KRG.shape[1]), cell.last_TKB1, steps
        return final

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_final):
        hidden_KGH, g_input, last_TKB1, steps = ctx.parts
        K, G, H = hidden_KGH.shape
        g_h, g_c = torch.zeros_like(g_final), torch.zeros_like(g_final)
        g_across = g_final.new_zeros(K, H, G)
        g_gates = g_final.new_empty(*g_final.shape[:2], G)
        g_i, g_f, g_g, g_o = g_gates.chunk(4, dim=-1)
        for t in reversed(range(len(steps))):
            h_before, c_before, gates, tanh_c, h = steps[t]
            i, f, g, o = gates.chunk(4, dim=-1)
            g_h.addcmul_(last_TKB1[t], g_final)
            # The slope of a sigmoid s is s (1 - s), that of a tanh y is 1 - y^2; with x = g_c i g, for example, the
            # input gate's gradient is x - x i. So no slope needs a pass of its own.
            through_o = g_h * h
            torch.addcmul(through_o, through_o, o, value=-1, out=g_o)
            g_c.addcmul_(g_h, torch.addcmul(o, h, tanh_c, value=-1))
            through_i = g_c * i
            through_ig = through_i * g
            torch.addcmul(through_ig, through_ig, i, value=-1, out=g_i)
            torch.addcmul(through_i, through_ig, g, value=-1, out=g_g)
            g_c.mul_(f)
            through_f = g_c * c_before
            torch.addcmul(through_f, through_f, f, value=-1, out=g_f)
            # Summed while at hand: a pack's gradients of all positions would not stay in the cache.
            g_input.add(t, g_gates[None])
            if t > 0:
                g_across.baddbmm_(h_before.transpose(1, 2), g_gates)
                g_h = torch.bmm(g_gates, hidden_KGH)
        return g_input.total(), g_across.transpose(1, 2), None
