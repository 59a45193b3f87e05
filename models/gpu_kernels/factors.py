"""Factored transitions as Triton kernels: what happens between two products, one launch each.

Twin: `FactoredTransition` in `recurrence/factored.py`. A position is two products, which stay with cuBLAS, each
followed by one kernel: the token's gates; and padding, the additive term and the division by the state's size. Backward
is the same in reverse, and the gradients of the factors are one product over all positions each. Transitions are never
multiplied out: on a GPU, to fetch one for each sample takes longer than two products. Shapes as in that file.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.normalise import normalise, normalise_back
from orch.models.gpu_kernels.operation import operation
from orch.models.recurrence.normalisation import Normalisation
from orch.models.recurrence.token_lookup import one_hot


def factored_scan(
    out_KHF: Tensor,
    gate_KRF: Tensor,
    into_KHF: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    additive_KRH: Tensor | None,
) -> Tensor:
    """Return the final states, (K, B, H). Past states are kept only if gradients are needed."""
    # The whole state is one block, so that the size of the block is that of the state.
    kind = "unit" if normalisation.kind == "block" else normalisation.kind
    tensors = [each for each in (out_KHF, gate_KRF, into_KHF, h0_KH, additive_KRH) if each is not None]
    inputs = out_KHF, gate_KRF, into_KHF, tokens_KBT, h0_KH, additive_KRH, kind
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return apply_function(_Scan, *inputs)
    states, *_, last = _read(*inputs, keep=False)
    return states[:, last]


def _read(
    out_KHF: Tensor,
    gate_KRF: Tensor,
    into_KHF: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    additive_KRH: Tensor | None,
    kind: str,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Return states, their sizes, products before the gates, and the place of the final state.

    They are those before and after every position if they are to be kept. If not, few places serve all positions.
    """
    (K, B, T), (_, H, F) = tokens_KBT.shape, out_KHF.shape
    places, kept = (T + 1, T) if keep else (2, 1)
    states, sizes = h0_KH.new_empty(K, places, B, H), h0_KH.new_empty(K, kept, B)
    inner, gated_KBF = h0_KH.new_empty(K, kept, B, F), h0_KH.new_empty(K, B, F)
    gate_KRF = gate_KRF.contiguous()
    additive_KRH = None if additive_KRH is None else additive_KRH.contiguous()
    states[:, 0] = h0_KH[:, None]
    for t in range(T):
        before, after, tokens_KB = states[:, t % places], states[:, (t + 1) % places], tokens_KBT[..., t]
        torch.bmm(before, into_KHF, out=inner[:, t % kept])
        gate_factors(inner[:, t % kept], gate_KRF, tokens_KB, gated_KBF)
        torch.bmm(gated_KBF, out_KHF.transpose(1, 2), out=after)
        finish_state(after, before, additive_KRH, tokens_KB, sizes[:, t % kept], gate_KRF.shape[1], kind)
    return states, sizes, inner, T % places


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        out_KHF: Tensor,
        gate_KRF: Tensor,
        into_KHF: Tensor,
        tokens_KBT: Tensor,
        h0_KH: Tensor,
        additive_KRH: Tensor | None,
        kind: str,
    ) -> Tensor:
        inputs = out_KHF, gate_KRF, into_KHF, tokens_KBT
        states, sizes, inner, last = _read(*inputs, h0_KH, additive_KRH, kind, keep=True)
        ctx.parts = *inputs, states, sizes, inner
        ctx.kind, ctx.adds = kind, additive_KRH is not None
        return states[:, last]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KBH: Tensor) -> tuple[Tensor | None, ...]:
        out_KHF, gate_KRF, into_KHF, tokens_KBT, states, sizes, inner = ctx.parts
        del ctx.parts  # the products give their place to gradients, so there is no second backward pass
        R, gate_KRF = gate_KRF.shape[1], gate_KRF.contiguous()
        g_KBH = g_KBH.clone(memory_format=torch.contiguous_format)
        g_u, back, gated_back = torch.empty_like(states[:, 1:]), torch.empty_like(inner), torch.empty_like(inner)
        for t in reversed(range(tokens_KBT.shape[2])):
            tokens_KB = tokens_KBT[..., t]
            finish_state_back(g_KBH, states[:, t + 1], sizes[:, t], tokens_KB, g_u[:, t], R, ctx.kind)
            torch.bmm(g_u[:, t], out_KHF, out=back[:, t])
            gate_factors_back(inner[:, t], back[:, t], gate_KRF, tokens_KB, gated_back[:, t])
            g_KBH.baddbmm_(gated_back[:, t], into_KHF.transpose(1, 2))
        g_u_KNH, gated_KNF, g_gates_KNF, back_KNF = (each.flatten(1, 2) for each in (g_u, inner, back, gated_back))
        # What belongs to padding is zero in these products, or has no row.
        which_KRN = one_hot(tokens_KBT, R, g_KBH.dtype).flatten(2)
        g_out = torch.bmm(g_u_KNH.transpose(1, 2), gated_KNF)
        g_gate = torch.bmm(which_KRN, g_gates_KNF)
        g_into = torch.bmm(states[:, :-1].flatten(1, 2).transpose(1, 2), back_KNF)
        g_additive = torch.bmm(which_KRN, g_u_KNH) if ctx.adds else None
        return g_out, g_gate, g_into, None, g_KBH.sum(1), g_additive, None


@operation(fake=lambda *arguments: None, changes=("gated_KBF",))
def gate_factors(inner_KBF: Tensor, gate_KRF: Tensor, tokens_KB: Tensor, gated_KBF: Tensor) -> None:
    """Multiply products with the gates of each sample's token, which are zero for padding."""
    (K, B, F), R = inner_KBF.shape, gate_KRF.shape[1]
    gate_kernel[(K * B,)](
        *(inner_KBF, gate_KRF, tokens_KB, gated_KBF),
        *(B, F, R, inner_KBF.stride(0), *tokens_KB.stride()),
        BLOCK=triton.next_power_of_2(F),
    )


@operation(fake=lambda *arguments: None, changes=("inner_KBF", "back_KBF", "gated_back_KBF"))
def gate_factors_back(
    inner_KBF: Tensor, back_KBF: Tensor, gate_KRF: Tensor, tokens_KB: Tensor, gated_back_KBF: Tensor
) -> None:
    """Write the gradient before the gates; turn `inner` into what the gates made of it, `back` into their gradient."""
    (K, B, F), R = inner_KBF.shape, gate_KRF.shape[1]
    gate_back_kernel[(K * B,)](
        *(inner_KBF, back_KBF, gate_KRF, tokens_KB, gated_back_KBF),
        *(B, F, R, inner_KBF.stride(0), *tokens_KB.stride()),
        BLOCK=triton.next_power_of_2(F),
    )


@operation(fake=lambda *arguments: None, changes=("u_KBH", "size_KB"))
def finish_state(
    u_KBH: Tensor,
    before_KBH: Tensor,
    additive_KRH: Tensor | None,
    tokens_KB: Tensor,
    size_KB: Tensor,
    num_readable: int,
    kind: str,
) -> None:
    """Keep the state at padding, add the additive term and divide by the size, in place; write the sizes."""
    K, B, H = u_KBH.shape
    strides = u_KBH.stride(0), before_KBH.stride(0), size_KB.stride(0), *tokens_KB.stride()
    finish_kernel[(K * B,)](
        *(u_KBH, before_KBH, u_KBH if additive_KRH is None else additive_KRH, tokens_KB, size_KB),
        *(B, num_readable, *strides),
        WIDTH=H,
        KIND=kind,
        ADDS=additive_KRH is not None,
        BLOCK=triton.next_power_of_2(H),
    )


@operation(fake=lambda *arguments: None, changes=("g_KBH", "g_u_KBH"))
def finish_state_back(
    g_KBH: Tensor, y_KBH: Tensor, size_KB: Tensor, tokens_KB: Tensor, g_u_KBH: Tensor, num_readable: int, kind: str
) -> None:
    """Write the gradient before the division; what passes padding stays in `g`, which is zero elsewhere."""
    K, B, H = g_KBH.shape
    strides = y_KBH.stride(0), size_KB.stride(0), g_u_KBH.stride(0), *tokens_KB.stride()
    finish_back_kernel[(K * B,)](
        *(g_KBH, y_KBH, size_KB, tokens_KB, g_u_KBH),
        *(B, num_readable, *strides),
        WIDTH=H,
        KIND=kind,
        BLOCK=triton.next_power_of_2(H),
    )


@triton.jit
def gate_kernel(
    inner, gate, tokens, gated, num_samples, F, R, stride, tokens_stride_k, tokens_stride_b, BLOCK: tl.constexpr
):
    """Multiply one sample's products with its token's gates."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.arange(0, BLOCK)
    token = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b)
    d = tl.load(gate + (k * R + token) * F + column, column < tl.where(token < R, F, 0), 0.0)
    x = tl.load(inner + k * stride + b * F + column, column < F, 0.0)
    tl.store(gated + (k * num_samples + b) * F + column, x * d, column < F)


@triton.jit
def gate_back_kernel(
    inner,
    back,
    gate,
    tokens,
    gated_back,
    num_samples,
    F,
    R,
    stride,
    tokens_stride_k,
    tokens_stride_b,
    BLOCK: tl.constexpr,
):
    """Compute all gradients at one sample's gates."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.arange(0, BLOCK)
    at = k * stride + b * F + column
    token = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b)
    d = tl.load(gate + (k * R + token) * F + column, column < tl.where(token < R, F, 0), 0.0)
    x = tl.load(inner + at, column < F, 0.0)
    g = tl.load(back + at, column < F, 0.0)
    tl.store(gated_back + at, g * d, column < F)
    tl.store(back + at, x * g, column < F)
    tl.store(inner + at, x * d, column < F)


@triton.jit
def finish_kernel(
    u, before, additive, tokens, size, num_samples, R,
    u_stride, before_stride, size_stride, tokens_stride_k, tokens_stride_b,
    WIDTH: tl.constexpr, KIND: tl.constexpr, ADDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Finish the state of one sample."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.arange(0, BLOCK)[None, :]
    token = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b)
    own = u + k * u_stride + b * WIDTH + column
    at_padding = tl.load(before + k * before_stride + b * WIDTH + column, column < WIDTH, 0.0)
    y = tl.where(token < R, tl.load(own, column < WIDTH, 0.0), at_padding)
    if ADDS:
        row = additive + (k * R + token) * WIDTH + column
        y += tl.load(row, column < tl.where(token < R, WIDTH, 0), 0.0)
    if KIND != "none":
        y, divisor = normalise(y, KIND, False, WIDTH, WIDTH)
        tl.store(size + k * size_stride + b, tl.sum(divisor))
    tl.store(own, y, column < WIDTH)


@triton.jit
def finish_back_kernel(
    g, y, size, tokens, g_u, num_samples, R, y_stride, size_stride, g_u_stride, tokens_stride_k, tokens_stride_b,
    WIDTH: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradient at the state of one sample before it was finished."""
    k, b = (tl.program_id(0) // num_samples).to(tl.int64), tl.program_id(0) % num_samples
    column = tl.arange(0, BLOCK)[None, :]
    token = tl.load(tokens + k * tokens_stride_k + b * tokens_stride_b)
    own = g + (k * num_samples + b) * WIDTH + column
    gradient = tl.load(own, column < WIDTH, 0.0)
    if KIND != "none":
        state = tl.load(y + k * y_stride + b * WIDTH + column, column < WIDTH, 0.0)
        divisor = tl.load(size + k * size_stride + b)
        gradient = normalise_back(gradient, state, divisor, KIND, False, WIDTH)
    tl.store(g_u + k * g_u_stride + b * WIDTH + column, gradient, column < WIDTH)
    tl.store(own, tl.where(token < R, 0.0, gradient), column < WIDTH)
