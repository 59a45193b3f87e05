"""Mamba's operations along time: a short causal convolution and the selective scan.

    convolve:  x_t = silu(b + Σ_j w_j u_{t-j})
    scan:      h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x_t,  y_t = C_t h_t,  from h = 0,  with A = -exp(A_log)

The scan is fast on a CPU for four reasons. It treats a few samples at a time, so that their states stay in the cache.
States are laid out (N, I), so that every operation runs along the long axis. It uses exp2, which torch computes three
times as fast as exp. And backward computes the states again, which takes less time than to fetch them from memory.

On CUDA the kernels of `mamba_ssm` and `causal_conv1d` run instead where they are installed (unmeasured). Suffixes of
names are shapes, as in `network.py`; J is the width of the convolution.
"""

import functools
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.core.errors import BrokenPackage
from orch.models.autograd import apply_function

_PACKAGES = ("mamba_ssm", "causal_conv1d")
STATES_AT_ONCE = 1 << 18
"""Number of state entries that forward treats at once: two arrays of them fit into the cache."""
STATES_KEPT_AT_ONCE = 1 << 19
"""Number of state entries, over all positions, that backward computes again at once."""


def kernel(device: torch.device | str) -> str:
    """Name of the implementation that runs on a device: `mamba_ssm`, or `orch` for the one in this file."""
    return "mamba_ssm" if torch.device(device).type == "cuda" and _kernels() else "orch"


def convolve(u_TBI: Tensor, weight_I1J: Tensor, bias_I: Tensor) -> Tensor:
    """Convolve each channel along time and apply silu: (T, B, I)."""
    kernels = _kernels_for(u_TBI)
    if kernels and 2 <= weight_I1J.shape[2] <= 4:  # the only sizes that the kernel supports
        _, convolve_BIT = kernels
        return convolve_BIT(_time_last(u_TBI), weight_I1J[:, 0], bias_I, activation="silu").permute(2, 0, 1)
    x_TBI = apply_function(_Convolution, u_TBI, weight_I1J, bias_I)
    return F.silu(x_TBI, inplace=not torch.is_grad_enabled())


def scan(x_TBI: Tensor, delta_TBI: Tensor, A_log_IN: Tensor, B_TBN: Tensor, C_TBN: Tensor) -> Tensor:
    """Run the selective scan and return y, (T, B, I)."""
    kernels = _kernels_for(x_TBI)
    if kernels:
        scan_BIT, _ = kernels
        inputs = _time_last(x_TBI), _time_last(delta_TBI), -A_log_IN.exp(), _time_last(B_TBN), _time_last(C_TBN)
        return scan_BIT(*inputs).permute(2, 0, 1)
    return apply_function(_Scan, x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN)


@functools.cache
def _kernels() -> tuple[Callable[..., Tensor], Callable[..., Tensor]] | None:
    """Return the scan and the convolution of the CUDA packages; None if neither package is installed.

    A package that is installed and cannot be loaded, such as one built for another version of torch, is an error: a GPU
    would otherwise train many times slower than its owner expects.
    """
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if len(missing) == len(_PACKAGES):
        return None
    remedy = "install both for this version of torch (see cluster/setup.sh), or uninstall both to use orch's own scan"
    if missing:
        raise BrokenPackage(f"one of Mamba's CUDA packages is installed, but {missing[0]} is missing: {remedy}")
    try:
        from causal_conv1d import causal_conv1d_fn
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    except Exception as error:  # a library of another version can fail in any way
        raise BrokenPackage(f"Mamba's CUDA kernels are installed but cannot be loaded ({error}): {remedy}") from error
    return selective_scan_fn, causal_conv1d_fn


def _kernels_for(x: Tensor) -> tuple[Callable[..., Tensor], Callable[..., Tensor]] | None:
    return _kernels() if x.is_cuda and x.dtype != torch.float64 else None


def _time_last(x_TBI: Tensor) -> Tensor:
    return x_TBI.permute(1, 2, 0).contiguous()


class _Convolution(torch.autograd.Function):
    """The convolution as shifted multiplications, several times as fast as torch's grouped convolution on a CPU."""

    @staticmethod
    def forward(ctx: Any, u_TBI: Tensor, weight_I1J: Tensor, bias_I: Tensor) -> Tensor:
        weight_JI = weight_I1J[:, 0].T.flip(0).contiguous()  # by lag
        ctx.save_for_backward(u_TBI, weight_JI)
        x_TBI = torch.addcmul(bias_I, u_TBI, weight_JI[0])
        for lag in range(1, min(len(weight_JI), len(u_TBI))):
            x_TBI[lag:].addcmul_(u_TBI[:-lag], weight_JI[lag])
        return x_TBI

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_TBI: Tensor) -> tuple[Tensor, ...]:
        u_TBI, weight_JI = ctx.saved_tensors
        g_u_TBI = g_TBI * weight_JI[0]
        g_weight_JI = torch.zeros_like(weight_JI)
        g_weight_JI[0] = (g_TBI * u_TBI).sum((0, 1))
        for lag in range(1, min(len(weight_JI), len(u_TBI))):
            g_u_TBI[:-lag].addcmul_(g_TBI[lag:], weight_JI[lag])
            g_weight_JI[lag] = (g_TBI[lag:] * u_TBI[:-lag]).sum((0, 1))
        return g_u_TBI, g_weight_JI.flip(0).T[:, None], g_TBI.sum((0, 1))


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_TBI: Tensor, delta_TBI: Tensor, A_log_IN: Tensor, B_TBN: Tensor, C_TBN: Tensor) -> Tensor:
        ctx.save_for_backward(x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN)
        rate_NI = _decay(A_log_IN) / math.log(2)
        y_TBI = torch.empty_like(x_TBI)
        for some in _pieces(x_TBI, STATES_AT_ONCE // A_log_IN.numel()):
            delta = delta_TBI[:, some, None]
            drive = delta * x_TBI[:, some, None]
            B, C, y = B_TBN[:, some, :, None], C_TBN[:, some, None], y_TBI[:, some, None]
            h_BNI = x_TBI.new_zeros(delta.shape[1], *rate_NI.shape)
            factor_BNI = torch.empty_like(h_BNI)
            for delta_t, drive_t, B_t, C_t, y_t in zip(delta, drive, B, C, y, strict=True):
                torch.exp2(torch.mul(rate_NI, delta_t, out=factor_BNI), out=factor_BNI)
                h_BNI.mul_(factor_BNI).addcmul_(B_t, drive_t)
                torch.bmm(C_t, h_BNI, out=y_t)
        return y_TBI

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_TBI: Tensor) -> tuple[Tensor, ...]:
        x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN = ctx.saved_tensors
        T = len(x_TBI)
        A_NI = _decay(A_log_IN)
        rate_NI = A_NI / math.log(2)
        g_x_TBI, g_delta_TBI, g_B_TBN, g_C_TBN = map(torch.empty_like, (x_TBI, delta_TBI, B_TBN, C_TBN))
        g_A_log_NI = torch.zeros_like(A_NI)
        pieces = _pieces(x_TBI, STATES_KEPT_AT_ONCE // (T * A_log_IN.numel()))
        buffers = x_TBI.new_empty(3, T * pieces[0].stop, *A_NI.shape)
        for some in pieces:
            x, delta, B, C, g = (whole[:, some] for whole in (x_TBI, delta_TBI, B_TBN, C_TBN, g_TBI))
            P = T * x.shape[1]
            factor_PNI, h_PNI, g_h_PNI = buffers[:, :P].unbind()
            factor, h, g_h = (each.view(T, -1, *A_NI.shape) for each in (factor_PNI, h_PNI, g_h_PNI))

            torch.exp2(torch.mul(rate_NI, delta[:, :, None], out=factor), out=factor)
            drive = delta * x
            torch.mul(B[..., None], drive[:, :, None], out=h)
            for h_t, factor_t, h_before in zip(h[1:], factor[1:], h, strict=False):
                h_t.addcmul_(factor_t, h_before)

            # Afterwards `g_h` holds the gradients at h_t, and `factor` what they pass on to h_{t-1}.
            torch.mul(C[..., None], g[:, :, None], out=g_h)
            for t in range(T - 1, 0, -1):
                g_h[t - 1].add_(factor[t].mul_(g_h[t]))
            # The gradient at Δ_t A, times A: summed over N it is Δ's, and times Δ it is A_log's.
            g_decay = factor[1:].mul_(h[:-1]).mul_(A_NI)

            g_C_TBN[:, some] = torch.bmm(g.reshape(P, 1, -1), h_PNI.mT).view_as(C)
            g_B_TBN[:, some] = torch.bmm(drive.view(P, 1, -1), g_h_PNI.mT).view_as(B)
            g_drive = torch.bmm(B.reshape(P, 1, -1), g_h_PNI).view_as(x)
            torch.mul(g_drive, delta, out=g_x_TBI[:, some])
            g_drive.mul_(x)[1:].add_(g_decay.sum(2))
            g_delta_TBI[:, some] = g_drive
            g_A_log_NI += g_decay.mul_(delta[1:, :, None]).flatten(0, 1).sum(0)
        return g_x_TBI, g_delta_TBI, g_A_log_NI.T, g_B_TBN, g_C_TBN


def _decay(A_log_IN: Tensor) -> Tensor:
    """Return A, laid out like the states."""
    return A_log_IN.exp().neg_().T.contiguous()


def _pieces(x_TBI: Tensor, num_samples: int) -> list[slice]:
    """Return the groups of samples to treat together: all of them on a GPU, which is faster there."""
    B = x_TBI.shape[1]
    size = B if x_TBI.is_cuda else min(max(num_samples, 1), B)
    return [slice(first, first + size) for first in range(0, B, size)]
