"""LSTM recurrence in torch.nn.LSTM's gate order (i, f, g, o), with one pre-activation per token; h_0 = c_0 = 0."""

from typing import Any

import torch
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.recurrence.batch_positions import BatchPositions, Position
from orch.models.recurrence.token_lookup import with_padding


def lstm_scan(input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor, read_KBP: Tensor | None = None) -> Tensor:
    """Return the final hidden states, (K, B, H), or those after the positions `read_KBP`, (K, BP, H); G = 4H.

    Past states are kept only if they are read or gradients are needed.
    """
    reading = BatchPositions(tokens_KBT, input_KRG.shape[1], hidden_KGH, read_KBP)
    if torch.is_grad_enabled() and (input_KRG.requires_grad or hidden_KGH.requires_grad):
        return reading.restore(apply_function(_LSTM, input_KRG, hidden_KGH, reading))
    cell = _Cell(input_KRG, hidden_KGH)
    h, c, final = (input_KRG.new_zeros(*tokens_KBT.shape[:2], hidden_KGH.shape[2]) for _ in range(3))
    states = []
    for position in reading.positions:
        h, c, *_ = cell.step(position, h[:, : position.num_samples], c[:, : position.num_samples])
        position.keep_last(h, final)
        if read_KBP is not None:
            states.append(h)
    return reading.restore(reading.choose(states, final))


class _Cell:
    """One step of the recurrence.

    All four gates go through one sigmoid: tanh(x) = 2 sigmoid(2x) - 1, so the weights of the candidate g are doubled.
    On a CPU torch's tanh takes six times as long as its sigmoid.
    """

    def __init__(self, input_KRG: Tensor, hidden_KGH: Tensor):
        H = hidden_KGH.shape[2]
        self._table = with_padding(input_KRG)
        self._across_KHG = hidden_KGH.transpose(1, 2).clone(memory_format=torch.contiguous_format)
        for weights in (self._table, self._across_KHG):
            weights[..., 2 * H : 3 * H] *= 2
        self._minus_one = -input_KRG.new_ones(())

    def step(self, position: Position, h_KBH: Tensor, c_KBH: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the new hidden state and cell state, then the activated gates and tanh(c) for backward."""
        gates_KBG = position.look_up(self._table).baddbmm_(h_KBH, self._across_KHG)
        i, f, g, o = gates_KBG.sigmoid_().chunk(4, dim=-1)
        torch.add(self._minus_one, g, alpha=2, out=g)
        new_c = torch.mul(f, c_KBH).addcmul_(i, g)
        tanh_c = torch.mul(new_c, 2).sigmoid_()
        torch.add(self._minus_one, tanh_c, alpha=2, out=tanh_c)
        return o * tanh_c, new_c, gates_KBG, tanh_c


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input_KRG: Tensor, hidden_KGH: Tensor, reading: BatchPositions) -> Tensor:
        K, B, H = len(input_KRG), reading.positions[0].num_samples, hidden_KGH.shape[2]
        cell = _Cell(input_KRG, hidden_KGH)
        h, c, final = (input_KRG.new_zeros(K, B, H) for _ in range(3))
        steps = []
        for position in reading.positions:
            before = h[:, : position.num_samples], c[:, : position.num_samples]
            h, c, gates, tanh_c = cell.step(position, *before)
            position.keep_last(h, final)
            steps.append((position, *before, gates, tanh_c, h))
        ctx.parts, ctx.num_readable = (hidden_KGH, steps, reading), input_KRG.shape[1]
        return reading.choose([h for *_, h in steps], final)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_final: Tensor) -> tuple[Tensor | None, ...]:
        hidden_KGH, steps, reading = ctx.parts
        spread = reading.spread(g_final)
        (K, G, H), R = hidden_KGH.shape, ctx.num_readable
        g_input, g_across = g_final.new_zeros(K, R + 1, G), g_final.new_zeros(K, H, G)
        g_h, all_g_c, buffer = None, torch.zeros_like(steps[0][1]), torch.empty_like(steps[0][3])
        for t in reversed(range(len(steps))):
            position, h_before, c_before, gates, tanh_c, h = steps[t]
            g_h = reading.join(t, g_h, spread)
            g_c = all_g_c[:, : position.num_samples]
            g_gates = buffer.view(-1)[: gates.numel()].view_as(gates)
            (i, f, g, o), (g_i, g_f, g_g, g_o) = gates.chunk(4, dim=-1), g_gates.chunk(4, dim=-1)
            # The slope of a sigmoid s is s (1 - s), that of a tanh y is 1 - y^2; with x = g_c i g, for example, the
            # input gate's gradient is x - x i. So no slope needs a separate pass.
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
            # Summed at once, because a pack's gradients of all positions would not stay in the cache.
            position.add_up(g_gates, g_input)
            if t > 0:
                g_across.baddbmm_(h_before.transpose(1, 2), g_gates)
                g_h = torch.bmm(g_gates, hidden_KGH)
        return g_input[:, :R], g_across.transpose(1, 2), None
