"""LSTM recurrence in torch.nn.LSTM's gate order (i, f, g, o), with one pre-activation per token; h_0 = c_0 = 0."""

import torch
from torch import Tensor

from models.recurrence.scan import one_hot, table_rows


def lstm_scan(input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Final hidden states, (K, B, H); G = 4H gates. Without gradients, no past state is kept."""
    if torch.is_grad_enabled() and (input_KRG.requires_grad or hidden_KGH.requires_grad):
        return _LSTM.apply(input_KRG, hidden_KGH, tokens_KBT)
    cell = _Cell(input_KRG, hidden_KGH, tokens_KBT)
    h_KBH = c_KBH = cell.initial()
    for t in range(tokens_KBT.shape[2]):
        h_KBH, c_KBH, *_ = cell.step(t, h_KBH, c_KBH)
    return h_KBH


class _Cell:
    def __init__(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor):
        K, R, G = input_KRG.shape
        self._H = G // 4
        self._table = torch.nn.functional.pad(input_KRG, (0, 0, 0, 1)).reshape(K * (R + 1), G)
        self._rows_KTB = table_rows(tokens_KBT, R + 1)
        self._across = hidden_KGH.transpose(1, 2)
        self.keep_KTB1 = (tokens_KBT == R).transpose(1, 2).unsqueeze(-1)

    def initial(self) -> Tensor:
        K, _, B = self._rows_KTB.shape
        return self._table.new_zeros(K, B, self._H)

    def step(self, t: int, h_KBH: Tensor, c_KBH: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The new hidden and cell state, then the activated gates and tanh(c) that backward wants."""
        H, rows_KB = self._H, self._rows_KTB[:, t]
        gates = self._table.index_select(0, rows_KB.flatten()).view(*rows_KB.shape, -1)
        gates.baddbmm_(h_KBH, self._across)
        gates[..., : 2 * H].sigmoid_()
        gates[..., 2 * H : 3 * H].tanh_()
        gates[..., 3 * H :].sigmoid_()
        i, f, g, o = gates.chunk(4, dim=-1)
        new_c = torch.addcmul(f * c_KBH, i, g)
        tanh_c = new_c.tanh()
        keep = self.keep_KTB1[:, t]
        return torch.where(keep, h_KBH, o * tanh_c), torch.where(keep, c_KBH, new_c), gates, tanh_c


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_KRG, hidden_KGH, tokens_KBT):
        cell = _Cell(input_KRG, hidden_KGH, tokens_KBT)
        h = c = cell.initial()
        steps = []
        for t in range(tokens_KBT.shape[2]):
            before = h, c
            h, c, gates, tanh_c = cell.step(t, h, c)
            steps.append((*before, gates, tanh_c))
        ctx.parts = hidden_KGH, tokens_KBT, input_KRG.shape[1], cell.keep_KTB1, steps
        return h.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_h):
        hidden_KGH, tokens_KBT, num_readable, keep_KTB1, steps = ctx.parts
        K, B, T = tokens_KBT.shape
        g_c = torch.zeros_like(g_h)
        gradients_KTBG = g_h.new_empty(K, T, B, 4 * g_h.shape[-1])
        for t in reversed(range(T)):
            _, c_before, gates, tanh_c = steps[t]
            i, f, g, o = gates.chunk(4, dim=-1)
            keep = keep_KTB1[:, t]
            g_new_c = torch.addcmul(g_c, g_h * o, 1 - tanh_c * tanh_c)
            g_gates = gradients_KTBG[:, t]
            torch.cat([g_new_c * g, g_new_c * c_before, g_new_c * i, g_h * tanh_c], dim=-1, out=g_gates)
            slope = gates * (1 - gates)
            torch.sub(1, g * g, out=slope.chunk(4, dim=-1)[2])
            g_gates.mul_(slope).masked_fill_(keep, 0)
            g_c = torch.where(keep, g_c, g_new_c * f)
            g_h = torch.baddbmm(g_h * keep, g_gates, hidden_KGH)
        g_KPG = gradients_KTBG.flatten(1, 2)
        before_KPH = torch.stack([step[0] for step in steps], dim=1).flatten(1, 2)
        return one_hot(tokens_KBT, num_readable, g_KPG.dtype) @ g_KPG, g_KPG.transpose(1, 2) @ before_KPH, None
