"""Mamba's short causal convolution with its activation: one launch forwards and one backwards.

    x_t = silu(b + Σ_j w_j u_{t-j})

Twin: `convolve` in `mamba/scan.py`. A program reads one sample for some channels. Backward computes the sums again. The
gradients of the weights are written as parts, one per sample, and added up by a second launch in a fixed order.
Suffixes of names are shapes as in `mamba/scan.py`.
"""

from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.operation import operation

_CHANNELS = 128


def convolve(u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> Tensor:
    """Convolve each channel along time and apply silu: (K, T, B, I). Only the last axis of `u` must be contiguous."""
    if torch.is_grad_enabled() and any(each.requires_grad for each in (u_KTBI, weight_KI1J, bias_KI)):
        return apply_function(_Convolution, u_KTBI, weight_KI1J, bias_KI)
    return cast(Tensor, convolution_forward(u_KTBI, weight_KI1J, bias_KI))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> Tensor:
        ctx.save_for_backward(u_KTBI, weight_KI1J, bias_KI)
        return cast(Tensor, convolution_forward(u_KTBI, weight_KI1J, bias_KI))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KTBI: Tensor) -> tuple[Tensor, ...]:
        u_KTBI, weight_KI1J, bias_KI = ctx.saved_tensors
        g_u, by_sample = convolution_backward(g_KTBI.contiguous(), u_KTBI, weight_KI1J, bias_KI)
        g_weight, g_bias = by_sample.sum(0).split([weight_KI1J.numel(), bias_KI.numel()])
        return g_u, g_weight.view_as(weight_KI1J), g_bias.view_as(bias_KI)


def _forward_result(u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> Tensor:
    return u_KTBI.new_empty(u_KTBI.shape)


@operation(fake=_forward_result)
def convolution_forward(u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> Tensor:
    """Return the activated sums."""
    x = _forward_result(u_KTBI, weight_KI1J, bias_KI)
    forward_kernel[_grid(u_KTBI)](
        *(u_KTBI, weight_KI1J.contiguous(), bias_KI.contiguous(), x),
        *(*u_KTBI.shape[1:], *u_KTBI.stride()[:3]),
        **convolution_options(weight_KI1J.shape[3]),
    )
    return x


def _backward_results(g_KTBI: Tensor, u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> tuple[Tensor, Tensor]:
    num_weights = weight_KI1J.numel() + bias_KI.numel()
    return u_KTBI.new_empty(u_KTBI.shape), u_KTBI.new_empty(u_KTBI.shape[2], num_weights)


@operation(fake=_backward_results)
def convolution_backward(g_KTBI: Tensor, u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of u, and those of the weight and the bias, one after the other, for each sample."""
    g_u, by_sample = _backward_results(g_KTBI, u_KTBI, weight_KI1J, bias_KI)
    backward_kernel[_grid(u_KTBI)](
        *(g_KTBI, u_KTBI, weight_KI1J.contiguous(), bias_KI.contiguous(), g_u, by_sample),
        *(*u_KTBI.shape[1:], *u_KTBI.stride()[:3]),
        **convolution_options(weight_KI1J.shape[3]),
    )
    return g_u, by_sample


def _grid(u_KTBI: Tensor) -> tuple[int, int, int]:
    K, _, B, I = u_KTBI.shape  # noqa: E741
    return triton.cdiv(I, _CHANNELS), B, K


def convolution_options(size: int) -> dict[str, int]:
    """Return the constants of both kernels."""
    return {"J": size, "LAGS": triton.next_power_of_2(size), "CHANNELS": _CHANNELS, "num_warps": 4}


@triton.jit
def _sums(u, weights, offset, t, T, width, lag, i, stride_t, J: tl.constexpr):
    """Return the sums before the activation at one position, and the inputs that they are made of."""
    # Nothing follows the last position, and nothing precedes the first.
    there = (lag < J) & (t >= lag) & (i < tl.where(t < T, width, 0))
    window = tl.load(u + (t - lag) * stride_t + i, there, 0.0)
    return offset + tl.sum(weights * window, 0), window


@triton.jit
def forward_kernel(
    u,
    weight,
    bias,
    x,
    T,
    B,
    width,
    stride_k,
    stride_t,
    stride_b,
    J: tl.constexpr,
    LAGS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Convolve one sample for some channels."""
    i = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    lag = tl.arange(0, LAGS)[:, None]
    b, k = tl.program_id(1), tl.program_id(2).to(tl.int64)
    known = (lag < J) & (i < width)[None, :]
    weights = tl.load(weight + k * width * J + i[None, :] * J + J - 1 - lag, known, 0.0)
    offset = tl.load(bias + k * width + i, i < width, 0.0)
    for t in range(T):
        s, _ = _sums(u + k * stride_k + b * stride_b, weights, offset, t, T, width, lag, i[None, :], stride_t, J)
        tl.store(x + ((k * T + t) * B + b) * width + i, s / (1 + tl.exp(-s)), i < width)


@triton.jit
def backward_kernel(
    g, u, weight, bias, g_u, by_sample, T, B, width, stride_k, stride_t, stride_b,
    J: tl.constexpr, LAGS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one sample for some channels."""
    i = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    lag = tl.arange(0, LAGS)[:, None]
    b, k, K = tl.program_id(1), tl.program_id(2).to(tl.int64), tl.num_programs(2)
    known = (lag < J) & (i < width)[None, :]
    weights = tl.load(weight + k * width * J + i[None, :] * J + J - 1 - lag, known, 0.0)
    offset = tl.load(bias + k * width + i, i < width, 0.0)
    g_weight, g_bias = tl.zeros_like(weights), tl.zeros_like(offset)
    for t in range(T):
        total = tl.zeros_like(offset)
        for later in tl.static_range(J):
            s, window = _sums(
                u + k * stride_k + b * stride_b, weights, offset, t + later, T, width, lag, i[None, :], stride_t, J
            )
            share = 1 / (1 + tl.exp(-s))
            place = (k * T + t + later) * B + b
            at_g = tl.load(g + place * width + i, i < tl.where(t + later < T, width, 0), 0.0)
            g_s = at_g * share * (1 + s * (1 - share))
            total += g_s * tl.load(weight + k * width * J + i * J + J - 1 - later, i < width, 0.0)
            if later == 0:
                g_weight += g_s[None, :] * window
                g_bias += g_s
        tl.store(g_u + ((k * T + t) * B + b) * width + i, total, i < width)
    part = by_sample + b.to(tl.int64) * K * width * (J + 1)
    tl.store(part + k * width * J + i[None, :] * J + J - 1 - lag, g_weight, known)
    tl.store(part + K * width * J + k * width + i, g_bias, i < width)
