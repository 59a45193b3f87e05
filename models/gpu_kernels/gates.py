"""Gated recurrences as Triton kernels: what LSTM and RNN compute between two products, one launch for a position.

The products with the recurrent weights stay with cuBLAS: one launch with those weights streamed through few processors
would take several times as long, because in full float32 a product of a whole batch needs all of them. At a padded
position the state stays as it is. Shapes as in `orch.models.recurrence`; G is the width of all gates.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.operation import operation
from orch.models.recurrence.token_lookup import one_hot

_BLOCK = 256


def lstm_scan(input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Return the final hidden states, (K, B, H). Past states are kept only if gradients are needed."""
    if torch.is_grad_enabled() and (input_KRG.requires_grad or hidden_KGH.requires_grad):
        return apply_function(_LSTM, input_KRG, hidden_KGH, tokens_KBT)
    return _read_lstm(input_KRG, hidden_KGH, tokens_KBT, keep=False)[-1][:, -1]


def elman_scan(input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor) -> Tensor:
    """Return the final states, (K, B, H). Past states are kept only if gradients are needed."""
    if torch.is_grad_enabled() and (input_KRH.requires_grad or hidden_KHH.requires_grad):
        return apply_function(_Elman, input_KRH, hidden_KHH, tokens_KBT)
    return _read_elman(input_KRH, hidden_KHH, tokens_KBT, keep=False)[:, -1]


def _read_lstm(input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the activated gates, the cell states and the hidden states, after every position if they are to be kept.

    If not, one place serves all positions, one after the other.
    """
    (K, B, T), (_, G, H) = tokens_KBT.shape, hidden_KGH.shape
    places = T if keep else 1
    table_KRG, across_KHG = input_KRG.contiguous(), hidden_KGH.transpose(1, 2)
    gates, c, h = (input_KRG.new_empty(K, places, B, width) for width in (G, H, H))
    for t in range(T):
        before, now = (t - 1) % places, t % places
        if t > 0:
            torch.bmm(h[:, before], across_KHG, out=gates[:, now])
        states = (each[:, place] for place in (before, now) for each in (c, h))
        lstm_forward(gates[:, now], table_KRG, tokens_KBT[..., t], *states, t == 0)
    return gates, c, h


def _read_elman(input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor, keep: bool) -> Tensor:
    """Return the states after every position; if they are not to be kept, the last two."""
    K, B, T = tokens_KBT.shape
    places = T if keep else 2
    table_KRH, across_KHH = input_KRH.contiguous(), hidden_KHH.transpose(1, 2)
    h = input_KRH.new_empty(K, places, B, hidden_KHH.shape[2])
    for t in range(T):
        before, now = (t - 1) % places, t % places
        if t > 0:
            torch.bmm(h[:, before], across_KHH, out=h[:, now])
        elman_forward(h[:, now], table_KRH, tokens_KBT[..., t], h[:, before], t == 0)
    return h if keep else h[:, : (T - 1) % places + 1]


def _weight_gradients(g_KTBG: Tensor, h_KTBH: Tensor, tokens_KBT: Tensor, num_readable: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of the token table and of the recurrent weights, given those before the activations."""
    # One product over all positions each. Those of padding are zero, so that its tokens need no row.
    which_KRN = one_hot(tokens_KBT, num_readable, g_KTBG.dtype).flatten(2)
    g_table_KRG = torch.bmm(which_KRN, g_KTBG.flatten(1, 2))
    return g_table_KRG, torch.bmm(g_KTBG[:, 1:].flatten(1, 2).transpose(1, 2), h_KTBH[:, :-1].flatten(1, 2))


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
        gates, c, h = _read_lstm(input_KRG, hidden_KGH, tokens_KBT, keep=True)
        ctx.parts, ctx.num_readable = (hidden_KGH, tokens_KBT, gates, c, h), input_KRG.shape[1]
        return h[:, -1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KBH: Tensor) -> tuple[Tensor | None, ...]:
        hidden_KGH, tokens_KBT, gates, c, h = ctx.parts
        del ctx.parts  # the gates give their place to their gradients, so there is no second backward pass
        g_h, g_c = g_KBH.clone(memory_format=torch.contiguous_format), torch.zeros_like(h[:, 0])
        for t in reversed(range(tokens_KBT.shape[2])):
            lstm_backward(gates[:, t], tokens_KBT[..., t], c[:, t - 1], c[:, t], g_h, g_c, ctx.num_readable, t == 0)
            if t > 0:
                g_h.baddbmm_(gates[:, t], hidden_KGH)
        return *_weight_gradients(gates, h, tokens_KBT, ctx.num_readable), None


class _Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input_KRH: Tensor, hidden_KHH: Tensor, tokens_KBT: Tensor) -> Tensor:
        h = _read_elman(input_KRH, hidden_KHH, tokens_KBT, keep=True)
        ctx.parts, ctx.num_readable = (hidden_KHH, tokens_KBT, h), input_KRH.shape[1]
        return h[:, -1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KBH: Tensor) -> tuple[Tensor | None, ...]:
        hidden_KHH, tokens_KBT, h = ctx.parts
        g_h, g_u = g_KBH.clone(memory_format=torch.contiguous_format), torch.empty_like(h)
        for t in reversed(range(tokens_KBT.shape[2])):
            elman_backward(h[:, t], tokens_KBT[..., t], g_h, g_u[:, t], ctx.num_readable)
            if t > 0:
                g_h.baddbmm_(g_u[:, t], hidden_KHH)
        return *_weight_gradients(g_u, h, tokens_KBT, ctx.num_readable), None


@operation(fake=lambda *arguments: None, changes=("gates_KBG", "new_c_KBH", "new_h_KBH"))
def lstm_forward(
    gates_KBG: Tensor,
    table_KRG: Tensor,
    tokens_KB: Tensor,
    c_KBH: Tensor,
    h_KBH: Tensor,
    new_c_KBH: Tensor,
    new_h_KBH: Tensor,
    first: bool,
) -> None:
    """Turn products with the state into activated gates, and write the states after this position.

    Before the first position states are zero, and neither they nor the products are read.
    """
    K, B, H = new_h_KBH.shape
    lstm_forward_kernel[_grid(K * B, H)](
        *(gates_KBG, table_KRG, tokens_KB, c_KBH, h_KBH, new_c_KBH, new_h_KBH),
        *(B, H, table_KRG.shape[1], gates_KBG.stride(0), *tokens_KB.stride(), h_KBH.stride(0), new_h_KBH.stride(0)),
        FIRST=first,
        BLOCK=_BLOCK,
    )


@operation(fake=lambda *arguments: None, changes=("gates_KBG", "g_h_KBH", "g_c_KBH"))
def lstm_backward(
    gates_KBG: Tensor,
    tokens_KB: Tensor,
    c_KBH: Tensor,
    new_c_KBH: Tensor,
    g_h_KBH: Tensor,
    g_c_KBH: Tensor,
    num_readable: int,
    first: bool,
) -> None:
    """Turn gates into their gradients, and those after this position into those that pass it without a product."""
    K, B, H = g_h_KBH.shape
    lstm_backward_kernel[_grid(K * B, H)](
        *(gates_KBG, tokens_KB, c_KBH, new_c_KBH, g_h_KBH, g_c_KBH),
        *(B, H, num_readable, gates_KBG.stride(0), *tokens_KB.stride(), new_c_KBH.stride(0)),
        FIRST=first,
        BLOCK=_BLOCK,
    )


@operation(fake=lambda *arguments: None, changes=("new_KBH",))
def elman_forward(new_KBH: Tensor, table_KRH: Tensor, tokens_KB: Tensor, h_KBH: Tensor, first: bool) -> None:
    """Turn products with the state into the states after this position; before the first one nothing is read."""
    K, B, H = new_KBH.shape
    elman_forward_kernel[_grid(K * B, H)](
        *(new_KBH, table_KRH, tokens_KB, h_KBH),
        *(B, H, table_KRH.shape[1], new_KBH.stride(0), *tokens_KB.stride(), h_KBH.stride(0)),
        FIRST=first,
        BLOCK=_BLOCK,
    )


@operation(fake=lambda *arguments: None, changes=("g_h_KBH", "g_u_KBH"))
def elman_backward(h_KBH: Tensor, tokens_KB: Tensor, g_h_KBH: Tensor, g_u_KBH: Tensor, num_readable: int) -> None:
    """Write the gradients before the activation, and turn those after this position into those that pass it."""
    K, B, H = g_h_KBH.shape
    elman_backward_kernel[_grid(K * B, H)](
        *(h_KBH, tokens_KB, g_h_KBH, g_u_KBH),
        *(B, H, num_readable, h_KBH.stride(0), *tokens_KB.stride(), g_u_KBH.stride(0)),
        BLOCK=_BLOCK,
    )


def _grid(num_rows: int, width: int) -> tuple[int, int]:
    return num_rows, triton.cdiv(width, _BLOCK)


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 2 / (1 + tl.exp(-2 * x)) - 1


@triton.jit
def lstm_forward_kernel(
    gates, table, tokens, c_before, h_before, c_after, h_after,
    num_samples, H, R, gates_stride, tokens_stride_k, tokens_stride_b, before_stride, after_stride,
    FIRST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Activate the gates in place and write the next cell and hidden state of one sample."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < H
    token = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b)
    is_read = token < R
    has_row = column < tl.where(is_read, H, 0)
    own = gates + k * gates_stride + b * 4 * H + column
    row = table + (k * R + token) * 4 * H + column
    i = tl.load(row, mask=has_row, other=0.0)
    f = tl.load(row + H, mask=has_row, other=0.0)
    g = tl.load(row + 2 * H, mask=has_row, other=0.0)
    o = tl.load(row + 3 * H, mask=has_row, other=0.0)
    c, h = tl.zeros_like(i), tl.zeros_like(i)
    if not FIRST:
        i += tl.load(own, mask=inside, other=0.0)
        f += tl.load(own + H, mask=inside, other=0.0)
        g += tl.load(own + 2 * H, mask=inside, other=0.0)
        o += tl.load(own + 3 * H, mask=inside, other=0.0)
        c = tl.load(c_before + k * before_stride + b * H + column, mask=inside, other=0.0)
        h = tl.load(h_before + k * before_stride + b * H + column, mask=inside, other=0.0)
    i, f, g, o = _sigmoid(i), _sigmoid(f), _tanh(g), _sigmoid(o)
    new_c = f * c + i * g
    new_h = o * _tanh(new_c)
    after = k * after_stride + b * H + column
    tl.store(own, i, mask=inside)
    tl.store(own + H, f, mask=inside)
    tl.store(own + 2 * H, g, mask=inside)
    tl.store(own + 3 * H, o, mask=inside)
    tl.store(c_after + after, tl.where(is_read, new_c, c), mask=inside)
    tl.store(h_after + after, tl.where(is_read, new_h, h), mask=inside)


@triton.jit
def lstm_backward_kernel(
    gates, tokens, c_before, c_after, g_h, g_c,
    num_samples, H, R, gates_stride, tokens_stride_k, tokens_stride_b, state_stride,
    FIRST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Replace the gates of one sample by the gradients before their activation, and pass on those of its states."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < H
    is_read = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b) < R
    own = gates + k * gates_stride + b * 4 * H + column
    i = tl.load(own, mask=inside, other=0.0)
    f = tl.load(own + H, mask=inside, other=0.0)
    g = tl.load(own + 2 * H, mask=inside, other=0.0)
    o = tl.load(own + 3 * H, mask=inside, other=0.0)
    state = k * state_stride + b * H + column
    tanh_c = _tanh(tl.load(c_after + state, mask=inside, other=0.0))
    passed = (k * num_samples + b) * H + column
    at_h = tl.load(g_h + passed, mask=inside, other=0.0)
    at_c = tl.load(g_c + passed, mask=inside, other=0.0)
    joined = at_c + at_h * o * (1 - tanh_c * tanh_c)
    tl.store(own, tl.where(is_read, joined * g * i * (1 - i), 0.0), mask=inside)
    tl.store(own + 2 * H, tl.where(is_read, joined * i * (1 - g * g), 0.0), mask=inside)
    tl.store(own + 3 * H, tl.where(is_read, at_h * tanh_c * o * (1 - o), 0.0), mask=inside)
    c = tl.zeros_like(f)
    if not FIRST:
        c = tl.load(c_before + state, mask=inside, other=0.0)
    tl.store(own + H, tl.where(is_read, joined * c * f * (1 - f), 0.0), mask=inside)
    tl.store(g_c + passed, tl.where(is_read, joined * f, at_c), mask=inside)
    tl.store(g_h + passed, tl.where(is_read, 0.0, at_h), mask=inside)


@triton.jit
def elman_forward_kernel(
    state, table, tokens, before,
    num_samples, H, R, state_stride, tokens_stride_k, tokens_stride_b, before_stride,
    FIRST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Replace the recurrent part of one sample's pre-activation by its next state."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < H
    token = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b)
    is_read = token < R
    has_row = column < tl.where(is_read, H, 0)
    own = state + k * state_stride + b * H + column
    u = tl.load(table + (k * R + token) * H + column, mask=has_row, other=0.0)
    h = tl.zeros_like(u)
    if not FIRST:
        u += tl.load(own, mask=inside, other=0.0)
        h = tl.load(before + k * before_stride + b * H + column, mask=inside, other=0.0)
    tl.store(own, tl.where(is_read, _tanh(u), h), mask=inside)


@triton.jit
def elman_backward_kernel(
    state, tokens, g_h, g_u,
    num_samples, H, R, state_stride, tokens_stride_k, tokens_stride_b, g_u_stride,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradient before the activation of one sample, and pass on that of its state."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < H
    is_read = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b) < R
    h = tl.load(state + k * state_stride + b * H + column, mask=inside, other=0.0)
    passed = g_h + (k * num_samples + b) * H + column
    at_h = tl.load(passed, mask=inside, other=0.0)
    own = g_u + k * g_u_stride + b * H + column
    tl.store(own, tl.where(is_read, at_h * (1 - h * h), 0.0), mask=inside)
    tl.store(passed, tl.where(is_read, 0.0, at_h), mask=inside)
