"""Mamba's operations along time: a short causal convolution and the selective scan.

    convolve:  x_t = silu(b + Σ_j w_j u_{t-j})
    scan:      h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x_t,  y_t = C_t h_t,  from h = 0,  with A = -exp(A_log)

The scan is fast on a CPU for four reasons. It treats a few samples at a time, so that their states stay in the cache.
States are laid out (N, I), so that every operation runs along the long axis. It uses exp2, which torch computes three
times as fast as exp. And backward computes the states again, which takes less time than to fetch them from memory.

On CUDA kernels in Triton run instead: `orch.models.gpu_kernels.selective_scan`. Without Triton, those of `mamba_ssm`
and `causal_conv1d` run where they are installed: the trials of a stack are groups of channels, which both kernels treat
separately, so one launch serves all of them. Neither was measured. Suffixes of names are shapes, as in `network.py`; J
is the width of the convolution.
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
from orch.models.kernel import PLAIN
from orch.models.mamba.config import MAMBA_SSM

_PACKAGES = ("mamba_ssm", "causal_conv1d")
STATES_AT_ONCE = 1 << 18
"""Number of state entries that forward treats at once: two arrays of them fit into the cache."""
STATES_KEPT_AT_ONCE = 1 << 19
"""Number of state entries, over all positions, that backward computes again at once."""


def kernel(device: torch.device | str) -> str:
    """Name of the implementation that runs on a device: `mamba_ssm`, or `plain` for the one in this file."""
    return MAMBA_SSM if torch.device(device).type == "cuda" and _kernels() else PLAIN


def convolve(
    u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor, activated: bool = True, packages: bool = False
) -> Tensor:
    """Convolve each channel along time and apply silu, or not: (K, T, B, I). With `packages`, those of CUDA may run."""
    kernels = _kernels_for(u_KTBI) if packages else None
    if kernels and 2 <= weight_KI1J.shape[3] <= 4:  # the only sizes that the kernel supports
        _, convolve_BIT = kernels
        silu = "silu" if activated else None
        x_BIT = convolve_BIT(_channels(u_KTBI), weight_KI1J.flatten(0, 2), bias_KI.flatten(), activation=silu)
        return _positions(x_BIT, len(u_KTBI))
    x_KTBI = apply_function(_Convolution, u_KTBI, weight_KI1J, bias_KI)
    return F.silu(x_KTBI, inplace=not torch.is_grad_enabled()) if activated else x_KTBI


def scan(
    x_KTBI: Tensor,
    delta_KTBI: Tensor,
    A_log_KIN: Tensor,
    B_KTBN: Tensor,
    C_KTBN: Tensor,
    compiled: bool = False,
    negative_eigenvalues: bool = False,
) -> Tensor:
    """Run the selective scan and return y, (K, T, B, I); `compiled` runs its compiled twin, on a CPU.

    With `negative_eigenvalues` the factor is 2 exp(Δ A) - 1 in place of exp(Δ A), and only this file's kernel runs.
    """
    kernels = _kernels_for(x_KTBI)
    if kernels and not negative_eigenvalues:
        scan_BIT, _ = kernels
        groups = (each.permute(2, 0, 3, 1).contiguous() for each in (B_KTBN, C_KTBN))  # (B, K, N, T)
        y_BIT = scan_BIT(_channels(x_KTBI), _channels(delta_KTBI), -A_log_KIN.exp().flatten(0, 1), *groups)
        return _positions(y_BIT, len(x_KTBI))
    if compiled and x_KTBI.dtype == torch.float32 and not negative_eigenvalues:
        return apply_function(_CompiledScan, x_KTBI, delta_KTBI, A_log_KIN, B_KTBN, C_KTBN)
    return apply_function(_Scan, x_KTBI, delta_KTBI, A_log_KIN, B_KTBN, C_KTBN, negative_eigenvalues)


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


def _channels(x_KTBI: Tensor) -> Tensor:
    """Return (B, K x I, T), which the CUDA kernels take."""
    return x_KTBI.permute(2, 0, 3, 1).flatten(1, 2).contiguous()


def _positions(x_BIT: Tensor, num_trials: int) -> Tensor:
    """Return (K, T, B, I): the inverse of `_channels`."""
    return torch.unflatten(x_BIT, 1, (num_trials, -1)).permute(1, 3, 0, 2)


class _Convolution(torch.autograd.Function):
    """The convolution as shifted multiplications, several times as fast as torch's grouped convolution on a CPU."""

    @staticmethod
    def forward(ctx: Any, u_KTBI: Tensor, weight_KI1J: Tensor, bias_KI: Tensor) -> Tensor:
        weight_JKI = weight_KI1J[:, :, 0].permute(2, 0, 1).flip(0)[:, :, None, None].contiguous()  # by lag
        ctx.save_for_backward(u_KTBI, weight_JKI)
        x_KTBI = torch.addcmul(bias_KI[:, None, None], u_KTBI, weight_JKI[0])
        for lag in range(1, min(len(weight_JKI), u_KTBI.shape[1])):
            x_KTBI[:, lag:].addcmul_(u_KTBI[:, :-lag], weight_JKI[lag])
        return x_KTBI

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KTBI: Tensor) -> tuple[Tensor, ...]:
        u_KTBI, weight_JKI = ctx.saved_tensors
        g_u_KTBI = g_KTBI * weight_JKI[0]
        g_weight_JKI = g_KTBI.new_zeros(len(weight_JKI), len(u_KTBI), u_KTBI.shape[3])
        g_weight_JKI[0] = _sum_positions(g_KTBI * u_KTBI)
        for lag in range(1, min(len(weight_JKI), u_KTBI.shape[1])):
            g_u_KTBI[:, :-lag].addcmul_(g_KTBI[:, lag:], weight_JKI[lag])
            g_weight_JKI[lag] = _sum_positions(g_KTBI[:, lag:] * u_KTBI[:, :-lag])
        return g_u_KTBI, g_weight_JKI.flip(0).permute(1, 2, 0)[:, :, None], _sum_positions(g_KTBI)


def _sum_positions(x_KTBI: Tensor) -> Tensor:
    """Sum over time and samples, trial by trial, so that the order of a trial's sum does not depend on the others."""
    return torch.stack([x_TBI.flatten(0, 1).sum(0) for x_TBI in x_KTBI])


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_KTBI: Tensor, delta_KTBI: Tensor, A_log_KIN: Tensor, B_KTBN: Tensor, C_KTBN: Tensor, negative: bool
    ) -> Tensor:
        inputs = x_KTBI, delta_KTBI, A_log_KIN, B_KTBN, C_KTBN
        ctx.save_for_backward(*inputs)
        ctx.negative = negative
        y_KTBI = torch.empty_like(x_KTBI)
        for some in _trials_at_once(x_KTBI):
            _scan_forward(*(each[some] for each in (*inputs, y_KTBI)), negative=negative)
        return y_KTBI

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KTBI: Tensor) -> tuple[Tensor | None, ...]:
        gradients = tuple(map(torch.empty_like, ctx.saved_tensors))
        for some in _trials_at_once(g_KTBI):
            _scan_backward(*(each[some] for each in (g_KTBI, *ctx.saved_tensors, *gradients)), negative=ctx.negative)
        return *gradients, None


class _CompiledScan(torch.autograd.Function):
    """The scan as machine code: see `orch.models.compiled.mamba_scan`."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        from orch.models.compiled.mamba_scan import scan_forward  # numba may be missing

        ctx.save_for_backward(*inputs)
        return scan_forward(*inputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KTBI: Tensor) -> tuple[Tensor, ...]:
        from orch.models.compiled.mamba_scan import scan_backward

        return scan_backward(g_KTBI, *ctx.saved_tensors)


def _scan_forward(
    x_KTBI: Tensor,
    delta_KTBI: Tensor,
    A_log_KIN: Tensor,
    B_KTBN: Tensor,
    C_KTBN: Tensor,
    y_KTBI: Tensor,
    *,
    negative: bool,
) -> None:
    """Write y."""
    rate_K1NI = _decay(A_log_KIN)[:, None] / math.log(2)
    for some in _pieces(x_KTBI, STATES_AT_ONCE // A_log_KIN.numel()):
        delta_KTb1I = delta_KTBI[:, :, some, None]
        drive_KTb1I = delta_KTb1I * x_KTBI[:, :, some, None]
        B_KTbN1, C_KTb1N = B_KTBN[:, :, some, :, None], C_KTBN[:, :, some, None]
        h_KbNI = x_KTBI.new_zeros(len(x_KTBI), delta_KTb1I.shape[2], *rate_K1NI.shape[2:])
        factor_KbNI = torch.empty_like(h_KbNI)
        for t in range(x_KTBI.shape[1]):
            torch.exp2(torch.mul(rate_K1NI, delta_KTb1I[:, t], out=factor_KbNI), out=factor_KbNI)
            if negative:
                factor_KbNI.mul_(2).sub_(1)
            h_KbNI.mul_(factor_KbNI).addcmul_(B_KTbN1[:, t], drive_KTb1I[:, t])
            y_KTBI[:, t, some] = torch.matmul(C_KTb1N[:, t], h_KbNI)[:, :, 0]


def _scan_backward(
    g_KTBI: Tensor,
    x_KTBI: Tensor,
    delta_KTBI: Tensor,
    A_log_KIN: Tensor,
    B_KTBN: Tensor,
    C_KTBN: Tensor,
    g_x_KTBI: Tensor,
    g_delta_KTBI: Tensor,
    g_A_log_KIN: Tensor,
    g_B_KTBN: Tensor,
    g_C_KTBN: Tensor,
    *,
    negative: bool,
) -> None:
    """Write the gradients, given that of y."""
    K, T = x_KTBI.shape[:2]
    A_KNI = _decay(A_log_KIN)
    rate_K11NI = A_KNI[:, None, None] / math.log(2)
    g_A_log_KNI = torch.zeros_like(A_KNI)
    pieces = _pieces(x_KTBI, STATES_KEPT_AT_ONCE // (T * A_log_KIN.numel()))
    buffers = x_KTBI.new_empty(3, K * T * pieces[0].stop, *A_KNI.shape[1:])
    for some in pieces:
        x, delta, B, C, g = (whole[:, :, some] for whole in (x_KTBI, delta_KTBI, B_KTBN, C_KTBN, g_KTBI))
        P = K * T * x.shape[2]
        factor_PNI, h_PNI, g_h_PNI = buffers[:, :P].unbind()
        factor, h, g_h = (each.view(K, T, -1, *A_KNI.shape[1:]) for each in (factor_PNI, h_PNI, g_h_PNI))

        torch.exp2(torch.mul(rate_K11NI, delta[:, :, :, None], out=factor), out=factor)
        if negative:
            factor.mul_(2).sub_(1)
        drive = delta * x
        torch.mul(B[..., None], drive[:, :, :, None], out=h)
        for t in range(1, T):
            h[:, t].addcmul_(factor[:, t], h[:, t - 1])

        # Afterwards `g_h` holds the gradients at h_t, and `factor` what they pass on to h_{t-1}.
        torch.mul(C[..., None], g[:, :, :, None], out=g_h)
        for t in range(T - 1, 0, -1):
            g_h[:, t - 1].add_(factor[:, t].mul_(g_h[:, t]))
        if negative:  # the factor's derivative is then itself plus one
            factor[:, 1:].add_(g_h[:, 1:])
        # The gradient at Δ_t A, times A: summed over N it is Δ's, and times Δ it is A_log's.
        g_decay = factor[:, 1:].mul_(h[:, :-1]).mul_(A_KNI[:, None, None])

        g_C_KTBN[:, :, some] = torch.bmm(g.reshape(P, 1, -1), h_PNI.mT).view_as(C)
        g_B_KTBN[:, :, some] = torch.bmm(drive.reshape(P, 1, -1), g_h_PNI.mT).view_as(B)
        g_drive = torch.bmm(B.reshape(P, 1, -1), g_h_PNI).view_as(x)
        torch.mul(g_drive, delta, out=g_x_KTBI[:, :, some])
        g_drive.mul_(x)[:, 1:].add_(g_decay.sum(3))
        g_delta_KTBI[:, :, some] = g_drive
        g_A_log_KNI += g_decay.mul_(delta[:, 1:, :, None]).flatten(1, 2).sum(1)
    g_A_log_KIN.copy_(g_A_log_KNI.mT)


def _decay(A_log_KIN: Tensor) -> Tensor:
    """Return A, laid out like the states."""
    return A_log_KIN.exp().neg_().mT.contiguous()


def _trials_at_once(x_KTBI: Tensor) -> list[slice]:
    """Return the groups of trials to treat together: all of them on a GPU, one by one where a cache is to be used."""
    K = len(x_KTBI)
    return [slice(0, K)] if x_KTBI.device.type != "cpu" else [slice(trial, trial + 1) for trial in range(K)]


def _pieces(x_KTBI: Tensor, num_samples: int) -> list[slice]:
    """Return the groups of samples to treat together: all of them on a GPU, which is faster there."""
    B = x_KTBI.shape[2]
    size = B if x_KTBI.device.type != "cpu" else min(max(num_samples, 1), B)
    return [slice(first, first + size) for first in range(0, B, size)]
