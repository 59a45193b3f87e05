"""The selective scan, Mamba's recurrence: h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x_t,  y_t = C_t h_t,  from h_0 = 0."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

STATES_IN_CACHE = 1 << 18
STATES_IN_BACKWARD = 1 << 19


def scan(x_TBI: Tensor, delta_TBI: Tensor, A_log_IN: Tensor, B_TBN: Tensor, C_TBN: Tensor) -> Tensor:
    return _Scan.apply(x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN):  # type: ignore[override]
        ctx.save_for_backward(x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN)
        rate_NI = _rate(A_log_IN)
        y_TBI = torch.empty_like(x_TBI)
        for piece in _pieces(x_TBI.shape[1], STATES_IN_CACHE // A_log_IN.numel()):
            x, delta = x_TBI[:, piece], delta_TBI[:, piece]
            h_BNI = x.new_zeros(x.shape[1], *rate_NI.shape)
            decay_BNI = torch.empty_like(h_BNI)
            for delta_t, input_t, B_t, C_t, y_t in zip(
                delta[:, :, None], (delta * x)[:, :, None], B_TBN[:, piece, :, None], C_TBN[:, piece, None], y_TBI[:, piece, None], strict=True
            ):
                torch.mul(rate_NI, delta_t, out=decay_BNI)
                torch.exp2(decay_BNI, out=decay_BNI)
                h_BNI.mul_(decay_BNI).addcmul_(B_t, input_t)
                torch.bmm(C_t, h_BNI, out=y_t)
        return y_TBI

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_TBI):  # type: ignore[override]
        x_TBI, delta_TBI, A_log_IN, B_TBN, C_TBN = ctx.saved_tensors
        T = len(x_TBI)
        rate_NI = _rate(A_log_IN)
        g_x, g_delta, g_B, g_C = map(torch.empty_like, (x_TBI, delta_TBI, B_TBN, C_TBN))
        g_A_log_NI = torch.zeros_like(rate_NI)
        pieces = _pieces(x_TBI.shape[1], STATES_IN_BACKWARD // (T * A_log_IN.numel()))
        buffers = x_TBI.new_empty(3, T * (pieces[0].stop), *rate_NI.shape)
        for piece in pieces:
            x, delta, B, C, g = (whole[:, piece].contiguous() for whole in (x_TBI, delta_TBI, B_TBN, C_TBN, g_TBI))
            P = T * x.shape[1]
            input_TBI = delta * x
            flat = decay_P, h_P, g_h_P = buffers[:, :P].unbind()
            decay, h, g_h = (f.view(*x.shape[:2], *rate_NI.shape) for f in flat)
            torch.exp2(torch.mul(rate_NI, delta[:, :, None], out=decay), out=decay)
            torch.mul(B[..., None], input_TBI[:, :, None], out=h)
            for decay_t, h_t, before in zip(decay[1:], h[1:], h[:-1], strict=True):
                h_t.addcmul_(decay_t, before)
            g_C[:, piece] = torch.bmm(g.view(P, 1, -1), h_P.mT).view_as(C)
            torch.mul(C[..., None], g[:, :, None], out=g_h)
            for t in range(T - 1, 0, -1):
                g_h[t - 1].add_(decay[t].mul_(g_h[t]))
            g_B[:, piece] = torch.bmm(input_TBI.view(P, 1, -1), g_h_P.mT).view_as(B)
            g_input = torch.bmm(B.view(P, 1, -1), g_h_P).view_as(x)
            g_exponent = decay[1:].mul_(h[:-1]).mul_(rate_NI)
            g_x[:, piece] = g_input * delta
            g_d = g_input.mul_(x)
            g_d[1:].add_(g_exponent.sum(2), alpha=math.log(2))
            g_delta[:, piece] = g_d
            g_A_log_NI += g_exponent.mul_(delta[1:, :, None]).flatten(0, 1).sum(0)
        return g_x, g_delta, g_A_log_NI.mul_(math.log(2)).T, g_B, g_C


def _rate(A_log_IN: Tensor) -> Tensor:
    """A in units of log 2, for exp2; laid out like the states."""
    return A_log_IN.exp().mul_(-1 / math.log(2)).T.contiguous()


def _pieces(num_samples: int, size: int) -> list[slice]:
    size = min(max(size, 1), num_samples)
    return [slice(first, first + size) for first in range(0, num_samples, size)]


def convolve(u_TBI, weight_I1K, bias_I):
    return F.silu(_Convolution.apply(u_TBI, weight_I1K, bias_I), inplace=not torch.is_grad_enabled())


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_TBI, weight_I1K, bias_I):  # type: ignore[override]
        w_KI = weight_I1K[:, 0].T.contiguous()
        ctx.save_for_backward(x_TBI, w_KI)
        T, K = len(x_TBI), len(w_KI)
        y_TBI = torch.addcmul(bias_I, x_TBI, w_KI[-1])
        for lag in range(1, min(K, T)):
            y_TBI[lag:].addcmul_(x_TBI[:-lag], w_KI[-1 - lag])
        return y_TBI

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_TBI):  # type: ignore[override]
        x_TBI, w_KI = ctx.saved_tensors
        T, K = len(x_TBI), len(w_KI)
        g_x = g_TBI * w_KI[-1]
        g_w = torch.zeros_like(w_KI)
        torch.sum((g_TBI*x_TBI).flatten(0,1), 0, out=g_w[-1])
        for lag in range(1, min(K, T)):
            g_x[:-lag].addcmul_(g_TBI[lag:], w_KI[-1 - lag])
            torch.sum((g_TBI[lag:]* x_TBI[:-lag]).flatten(0,1), 0, out=g_w[-1-lag])
        return g_x, g_w.T[:, None], g_TBI.sum((0, 1))

def kernel(): ...
