"""Elman recurrence: h_t = tanh(p(x_t) + W h_{t-1}), with one pre-activation p per token; h_0 = 0."""

from typing import Any

import torch
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.recurrence.batch_positions import BatchPositions, Position
from orch.models.recurrence.token_lookup import with_padding


def elman_scan(input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor, read_KBP: Tensor | None = None) -> Tensor:
    """Return the final states, (K, B, H), or those after the positions `read_KBP`, (K, BP, H).

    Past states are kept only if they are read or gradients are needed.
    """
    reading = BatchPositions(tokens_KBT, input_KRH.shape[1], hidden_KHH, read_KBP)
    if torch.is_grad_enabled() and (input_KRH.requires_grad or hidden_KHH.requires_grad):
        return reading.restore(apply_function(_Elman, input_KRH, hidden_KHH, reading))
    cell = _Cell(input_KRH, hidden_KHH)
    h, final = (input_KRH.new_zeros(*tokens_KBT.shape[:2], input_KRH.shape[2]) for _ in range(2))
    states = []
    for position in reading.positions:
        h = cell.step(position, h[:, : position.num_samples])
        position.keep_last(h, final)
        if read_KBP is not None:
            states.append(h)
    return reading.restore(reading.choose(states, final))


class _Cell:
    """One step of the recurrence.

    tanh(x) is computed as 2 sigmoid(2x) - 1, from doubled weights: on a CPU torch's tanh takes six times as long as its
    sigmoid.
    """

    def __init__(self, input_KRH: Tensor, hidden_KHH: Tensor):
        self._table = with_padding(2 * input_KRH)
        self._across_KHH = 2 * hidden_KHH.transpose(1, 2)
        self._minus_one = -input_KRH.new_ones(())

    def step(self, position: Position, h_KBH: Tensor) -> Tensor:
        new_KBH = position.look_up(self._table).baddbmm_(h_KBH, self._across_KHH)
        return torch.add(self._minus_one, new_KBH.sigmoid_(), alpha=2, out=new_KBH)


class _Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input_KRH: Tensor, hidden_KHH: Tensor, reading: BatchPositions) -> Tensor:
        cell = _Cell(input_KRH, hidden_KHH)
        h, final = (
            input_KRH.new_zeros(len(input_KRH), reading.positions[0].num_samples, input_KRH.shape[2]) for _ in range(2)
        )
        steps = []
        for position in reading.positions:
            before = h[:, : position.num_samples]
            h = cell.step(position, before)
            position.keep_last(h, final)
            steps.append((position, before, h))
        ctx.parts, ctx.num_readable = (hidden_KHH, steps, reading), input_KRH.shape[1]
        return reading.choose([h for *_, h in steps], final)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_final: Tensor) -> tuple[Tensor | None, ...]:
        (hidden_KHH, steps, reading), (K, _, H), R = ctx.parts, g_final.shape, ctx.num_readable
        spread = reading.spread(g_final)
        g_input, g_across, g_h = g_final.new_zeros(K, R + 1, H), torch.zeros_like(hidden_KHH), None
        for t in reversed(range(len(steps))):
            position, before, h = steps[t]
            g_h = reading.join(t, g_h, spread)
            g_u = torch.addcmul(g_h, g_h * h, h, value=-1)
            # Summed at once, because a pack's gradients of all positions would not stay in the cache.
            position.add_up(g_u, g_input)
            if t > 0:
                g_across.baddbmm_(before.transpose(1, 2), g_u)
                g_h = torch.bmm(g_u, hidden_KHH)
        return g_input[:, :R], g_across.transpose(1, 2), None
