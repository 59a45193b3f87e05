"""Elman recurrence: h_t = tanh(p(x_t) + W h_{t-1}), with one pre-activation p per token; h_0 = 0."""

import torch
from torch import Tensor

from models.recurrence.reading import Reading
from models.recurrence.tokens import with_padding


def elman_scan(input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Final states, (K, B, H). Without gradients, no past state is kept."""
    reading = Reading(tokens_KBT, input_KRH.shape[1])
    if torch.is_grad_enabled() and (input_KRH.requires_grad or hidden_KHH.requires_grad):
        return reading.restore(_Elman.apply(input_KRH, hidden_KHH, reading))
    cell = _Cell(input_KRH, hidden_KHH, reading)
    h, final = cell.initial(), cell.initial()
    for t, num_samples in enumerate(reading.num_samples):
        h = cell.step(t, h[:, :num_samples])
        final[:, :num_samples].addcmul_(cell.is_last[t], h)
    return reading.restore(final)


class _Cell:
    """tanh(x) is taken as 2 sigmoid(2x) - 1, from doubled weights: on a CPU torch's tanh takes six times as long as its
    sigmoid."""

    def __init__(self, input_KRH: Tensor, hidden_KHH: Tensor, reading: Reading):
        self._reading = reading
        self._table = with_padding(2 * input_KRH)
        self._across_KHH = 2 * hidden_KHH.transpose(1, 2)
        self.is_last = reading.is_last(input_KRH.dtype)
        self._minus_one = -input_KRH.new_ones(())

    def initial(self) -> Tensor:
        return self._table.new_zeros(len(self._across_KHH), self._reading.num_samples[0], self._table.shape[1])

    def step(self, t: int, h_KBH: Tensor) -> Tensor:
        new_KBH = self._reading.look_up(t, self._table)
        if t > 0:
            new_KBH.baddbmm_(h_KBH, self._across_KHH)
        return torch.add(self._minus_one, new_KBH.sigmoid_(), alpha=2, out=new_KBH)


class _Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_KRH, hidden_KHH, reading):
        cell = _Cell(input_KRH, hidden_KHH, reading)
        h, final = cell.initial(), cell.initial()
        steps = []
        for t, num_samples in enumerate(reading.num_samples):
            before = h[:, :num_samples]
            h = cell.step(t, before)
            final[:, :num_samples].addcmul_(cell.is_last[t], h)
            steps.append((before, h))
        ctx.parts = hidden_KHH, reading, cell.is_last, steps
        return final

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_final):
        hidden_KHH, reading, is_last, steps = ctx.parts
        g_input, g_across, g_before = reading.sums(), torch.zeros_like(hidden_KHH), g_final[:, :0]
        for t in reversed(range(len(steps))):
            before, h = steps[t]
            g_h = g_final[:, : h.shape[1]] * is_last[t]
            g_h[:, : g_before.shape[1]] += g_before
            g_u = torch.addcmul(g_h, g_h * h, h, value=-1)
            # Summed while at hand: a pack's gradients of all positions would not stay in the cache.
            g_input.add(t, g_u[None])
            if t > 0:
                g_across.baddbmm_(before.transpose(1, 2), g_u)
                g_before = torch.bmm(g_u, hidden_KHH)
        return g_input.total(), g_across.transpose(1, 2), None
