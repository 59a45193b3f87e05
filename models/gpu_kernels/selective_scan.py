"""Mamba's selective scan over all positions of a stack of trials: one launch forwards and one backwards.

    Δ_t = softplus(r_t + b);   h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x_t;   y_t = (C_t h_t + D x_t) silu(z_t)

Twin: `scan` in `mamba/scan.py`, with what surrounds it in `mamba/network.py`. A warp reads one sample for 32 channels,
and their states stay in its registers. Forward keeps the state before every few positions, and backward computes the
others again from there: states of all positions would take several times as long to write and read as all else.

Gradients that are sums over samples or channels are written as parts, one per warp, and added up by a second launch in
a fixed order. Suffixes of names are shapes as in `mamba/network.py`; Q is the width of B and C with the time step
before them.
"""

from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.operation import operation

POSITIONS_APART = 4
"""Positions from one state that forward keeps to the next. Backward computes those between them again."""
_CHANNELS = 32


def mix(
    x_KTBI: Tensor,
    into_KQI: Tensor,
    step_KIr: Tensor,
    bias_KI: Tensor,
    A_log_KIN: Tensor,
    D_KI: Tensor,
    z: Tensor,
    end_KB: Tensor | None,
) -> Tensor:
    """Return y at every position, (K, T, B, I), or only at each sample's end, (K, B, I), where `end_KB` is given.

    `into` makes the time step, B and C of x, and `step` makes r of the first. `z` has the shape of the result, and only
    its last axis must be contiguous.
    """
    inputs = x_KTBI, into_KQI, step_KIr, bias_KI, A_log_KIN, D_KI, z
    if torch.is_grad_enabled() and any(each.requires_grad for each in inputs):
        return apply_function(_Mix, *inputs, end_KB)
    y, _ = selective_scan_forward(x_KTBI, *_project(*inputs[:3]), *inputs[3:], end_KB, False)
    return cast(Tensor, y)


def _project(x_KTBI: Tensor, into_KQI: Tensor, step_KIr: Tensor) -> tuple[Tensor, Tensor]:
    """Return r, (K, T, B, I), and the time step, B and C, (K, T, B, Q)."""
    projected_KPQ = torch.bmm(x_KTBI.flatten(1, 2), into_KQI.mT)
    r_KPI = torch.bmm(projected_KPQ[..., : step_KIr.shape[2]], step_KIr.mT)
    return r_KPI.view(x_KTBI.shape), projected_KPQ.view(*x_KTBI.shape[:3], -1)


class _Mix(torch.autograd.Function):
    """The scan with the products that make its inputs, whose gradients are so written where they belong."""

    @staticmethod
    def forward(ctx: Any, x_KTBI: Tensor, into_KQI: Tensor, step_KIr: Tensor, *others: Any) -> Tensor:
        r, projected = _project(x_KTBI, into_KQI, step_KIr)
        y, states = selective_scan_forward(x_KTBI, r, projected, *others, True)
        ctx.save_for_backward(x_KTBI, into_KQI, step_KIr, r, projected, *others, states)
        return cast(Tensor, y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x_KTBI, into_KQI, step_KIr, r, projected, *others, states = ctx.saved_tensors
        (K, I, N), rank = others[1].shape, step_KIr.shape[2]  # noqa: E741
        g_x, g_r, g_z, by_channel, by_sample = selective_scan_backward(
            g.contiguous(), x_KTBI, r, projected, *others, states
        )
        g_projected = torch.empty_like(projected)
        torch.sum(by_sample, 0, out=g_projected[..., rank:])
        x, projected, g_x, g_r, g_projected = (
            each.flatten(1, 2) for each in (x_KTBI, projected, g_x, g_r, g_projected)
        )
        torch.bmm(g_r, step_KIr, out=g_projected[..., :rank])
        g_step, g_into = torch.bmm(g_r.mT, projected[..., :rank]), torch.bmm(g_projected.mT, x)
        g_x.baddbmm_(g_projected, into_KQI)
        g_A_log, g_D, g_bias = by_channel.sum(0).split([K * I * N, K * I, K * I])
        by_parameter = g_bias.view(K, I), g_A_log.view(K, I, N), g_D.view(K, I)
        return g_x.view_as(x_KTBI), g_into, g_step, *by_parameter, g_z, None


def _forward_results(
    x_KTBI: Tensor,
    r_KTBI: Tensor,
    projected_KTBQ: Tensor,
    bias_KI: Tensor,
    A_log_KIN: Tensor,
    D_KI: Tensor,
    z: Tensor,
    end_KB: Tensor | None,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    (K, T, B, _), (_, I, N) = x_KTBI.shape, A_log_KIN.shape  # noqa: E741
    return x_KTBI.new_empty(z.shape), x_KTBI.new_empty(K, B, triton.cdiv(T, POSITIONS_APART) if keep else 0, I, N)


@operation(fake=_forward_results)
def selective_scan_forward(
    x_KTBI: Tensor,
    r_KTBI: Tensor,
    projected_KTBQ: Tensor,
    bias_KI: Tensor,
    A_log_KIN: Tensor,
    D_KI: Tensor,
    z: Tensor,
    end_KB: Tensor | None,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """Return y, and every few states if they are to be kept."""
    inputs = x_KTBI, r_KTBI, projected_KTBQ, bias_KI, A_log_KIN, D_KI, z
    y, states = _forward_results(*inputs, end_KB, keep)
    forward_kernel[_grid(x_KTBI)](
        *(each.contiguous() for each in inputs[:6]),
        *(z, y if end_KB is None else end_KB.contiguous(), y, states),
        *_sizes(x_KTBI, projected_KTBQ, z),
        KEEP=keep,
        **scan_options(A_log_KIN.shape[2], end_KB is not None),
    )
    return y, states


def _backward_results(
    g: Tensor,
    x_KTBI: Tensor,
    r_KTBI: Tensor,
    projected_KTBQ: Tensor,
    bias_KI: Tensor,
    A_log_KIN: Tensor,
    D_KI: Tensor,
    z: Tensor,
    end_KB: Tensor | None,
    states: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    (K, T, B, _), (_, I, N) = x_KTBI.shape, A_log_KIN.shape  # noqa: E741
    return (
        x_KTBI.new_empty(x_KTBI.shape),
        x_KTBI.new_empty(x_KTBI.shape),
        x_KTBI.new_empty(z.shape),
        x_KTBI.new_empty(B, K * I * (N + 2)),
        x_KTBI.new_empty(triton.cdiv(I, _CHANNELS), K, T, B, 2 * N),
    )


@operation(fake=_backward_results)
def selective_scan_backward(
    g: Tensor,
    x_KTBI: Tensor,
    r_KTBI: Tensor,
    projected_KTBQ: Tensor,
    bias_KI: Tensor,
    A_log_KIN: Tensor,
    D_KI: Tensor,
    z: Tensor,
    end_KB: Tensor | None,
    states: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of x, r and z, then parts of sums.

    The first are those of A_log, D and the bias, one after the other, for each sample. The second are those of B and C,
    for each group of channels.
    """
    inputs = x_KTBI, r_KTBI, projected_KTBQ, bias_KI, A_log_KIN, D_KI, z
    results = _backward_results(g, *inputs, end_KB, states)
    backward_kernel[_grid(x_KTBI)](
        g,
        *(each.contiguous() for each in inputs[:6]),
        *(z, g if end_KB is None else end_KB.contiguous(), states, *results),
        *_sizes(x_KTBI, projected_KTBQ, z),
        **scan_options(A_log_KIN.shape[2], end_KB is not None),
    )
    return results


def _grid(x_KTBI: Tensor) -> tuple[int, int, int]:
    K, _, B, I = x_KTBI.shape  # noqa: E741
    return triton.cdiv(I, _CHANNELS), B, K


def _sizes(x_KTBI: Tensor, projected_KTBQ: Tensor, z: Tensor) -> tuple[int, ...]:
    """Return T, B, I and Q, then the strides of z by trial, position and sample."""
    strides = (z.stride(0), 0, z.stride(1)) if z.dim() == 3 else z.stride()[:3]
    return *x_KTBI.shape[1:], projected_KTBQ.shape[-1], *strides


def scan_options(num_entries: int, at_end: bool) -> dict[str, int]:
    """Return the constants of both kernels."""
    return {
        "N": num_entries,
        "ENTRIES": triton.next_power_of_2(num_entries),
        "CHANNELS": _CHANNELS,
        "APART": POSITIONS_APART,
        "AT_END": at_end,
        "num_warps": 1,
    }


@triton.jit
def _log1p(x):
    """Return log(1 + x) with its relative precision, which log(1 + x) as it stands loses for small x."""
    rounded = 1 + x
    return tl.where(rounded == 1, x, tl.log(rounded) * (x / tl.where(rounded == 1, 1, rounded - 1)))


@triton.jit
def _softplus(x):
    return tl.where(x > 0, x, 0) + _log1p(tl.exp(-tl.abs(x)))


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def forward_kernel(
    x, r, projected, bias, A_log, skips, z, end, y, states, T, B, width, Q, stride_k, stride_t, stride_b,
    KEEP: tl.constexpr, N: tl.constexpr, ENTRIES: tl.constexpr, CHANNELS: tl.constexpr,
    APART: tl.constexpr, AT_END: tl.constexpr,
):  # fmt: skip
    """Read one sample for some channels."""
    i = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    n = tl.arange(0, ENTRIES)[:, None]
    b, k = tl.program_id(1), tl.program_id(2).to(tl.int64)
    sample = k * B + b
    inside, entry = i < width, (n < N) & (i < width)[None, :]
    offset = tl.load(bias + k * width + i, inside, 0.0)
    skip = tl.load(skips + k * width + i, inside, 0.0)
    A = -tl.exp(tl.load(A_log + k * width * N + i[None, :] * N + n, entry, 0.0))
    h = tl.zeros_like(A)
    last = T
    if AT_END:
        last = tl.load(end + sample)
    for t in range(T):
        if KEEP and t % APART == 0:
            place = sample * tl.cdiv(T, APART) + t // APART
            tl.store(states + place * N * width + i[None, :] * N + n, h, entry)
        place = (k * T + t) * B + b
        at_x = tl.load(x + place * width + i, inside, 0.0)
        delta = _softplus(tl.load(r + place * width + i, inside, 0.0) + offset)
        at_B = tl.load(projected + place * Q + Q - 2 * N + n, n < N, 0.0)
        at_C = tl.load(projected + place * Q + Q - N + n, n < N, 0.0)
        h = tl.exp(A * delta[None, :]) * h + at_B * (delta * at_x)[None, :]
        if AT_END:
            if t == last:
                gate = tl.load(z + k * stride_k + b * stride_b + i, inside, 0.0)
                out = (tl.sum(at_C * h, 0) + skip * at_x) * gate * _sigmoid(gate)
                tl.store(y + sample * width + i, out, inside)
        else:
            gate = tl.load(z + k * stride_k + t * stride_t + b * stride_b + i, inside, 0.0)
            out = (tl.sum(at_C * h, 0) + skip * at_x) * gate * _sigmoid(gate)
            tl.store(y + place * width + i, out, inside)


@triton.jit
def backward_kernel(
    g, x, r, projected, bias, A_log, skips, z, end, states, g_x, g_r, g_z, by_channel, by_sample,
    T, B, width, Q, stride_k, stride_t, stride_b,
    N: tl.constexpr, ENTRIES: tl.constexpr, CHANNELS: tl.constexpr,
    APART: tl.constexpr, AT_END: tl.constexpr,
):  # fmt: skip
    """Go back through one sample for some channels."""
    i = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    n = tl.arange(0, ENTRIES)[:, None]
    b, k, K = tl.program_id(1), tl.program_id(2).to(tl.int64), tl.num_programs(2)
    sample, pieces = k * B + b, tl.cdiv(T, APART)
    inside, entry = i < width, (n < N) & (i < width)[None, :]
    offset = tl.load(bias + k * width + i, inside, 0.0)
    skip = tl.load(skips + k * width + i, inside, 0.0)
    A = -tl.exp(tl.load(A_log + k * width * N + i[None, :] * N + n, entry, 0.0))
    g_h, g_A_log = tl.zeros_like(A), tl.zeros_like(A)
    g_D, g_bias = tl.zeros_like(skip), tl.zeros_like(skip)
    last = T
    if AT_END:
        last = tl.load(end + sample)
    for back in range(T):
        t = T - 1 - back
        h = tl.load(states + (sample * pieces + t // APART) * N * width + i[None, :] * N + n, entry, 0.0)
        for earlier in range(t // APART * APART, t):
            place = (k * T + earlier) * B + b
            at_x = tl.load(x + place * width + i, inside, 0.0)
            delta = _softplus(tl.load(r + place * width + i, inside, 0.0) + offset)
            at_B = tl.load(projected + place * Q + Q - 2 * N + n, n < N, 0.0)
            h = tl.exp(A * delta[None, :]) * h + at_B * (delta * at_x)[None, :]
        place = (k * T + t) * B + b
        at_x = tl.load(x + place * width + i, inside, 0.0)
        raw = tl.load(r + place * width + i, inside, 0.0) + offset
        delta = _softplus(raw)
        drive = delta * at_x
        at_B = tl.load(projected + place * Q + Q - 2 * N + n, n < N, 0.0)
        at_C = tl.load(projected + place * Q + Q - N + n, n < N, 0.0)
        factor = tl.exp(A * delta[None, :])
        carried = factor * h
        h = carried + at_B * drive[None, :]
        if AT_END:
            gate = tl.load(z + k * stride_k + b * stride_b + i, inside, 0.0)
            at_y = tl.load(g + sample * width + i, i < tl.where(t == last, width, 0), 0.0)
        else:
            gate = tl.load(z + k * stride_k + t * stride_t + b * stride_b + i, inside, 0.0)
            at_y = tl.load(g + place * width + i, inside, 0.0)
        share = _sigmoid(gate)
        through = at_y * gate * share
        g_gate = at_y * share * (1 + gate * (1 - share)) * (tl.sum(at_C * h, 0) + skip * at_x)
        if AT_END:
            tl.store(g_z + sample * width + i, g_gate, i < tl.where(t == last, width, 0))
        else:
            tl.store(g_z + place * width + i, g_gate, inside)
        g_D += through * at_x
        g_h += at_C * through[None, :]
        part = by_sample + ((tl.program_id(0) * K + k) * T * B + t * B + b) * 2 * N + n
        tl.store(part, tl.sum(g_h * drive[None, :], 1, keep_dims=True), n < N)
        tl.store(part + N, tl.sum(h * through[None, :], 1, keep_dims=True), n < N)
        g_drive = tl.sum(at_B * g_h, 0)
        g_decay = g_h * carried * A  # that of Δ, entry by entry; times Δ it is that of A_log
        g_raw = (g_drive * at_x + tl.sum(g_decay, 0)) * _sigmoid(raw)
        tl.store(g_x + place * width + i, through * skip + g_drive * delta, inside)
        tl.store(g_r + place * width + i, g_raw, inside)
        g_bias += g_raw
        g_A_log += g_decay * delta[None, :]
        g_h *= factor
    part = by_channel + b.to(tl.int64) * K * width * (N + 2)
    tl.store(part + k * width * N + i[None, :] * N + n, g_A_log, entry)
    tl.store(part + K * width * N + k * width + i, g_D, inside)
    tl.store(part + K * width * (N + 1) + k * width + i, g_bias, inside)
