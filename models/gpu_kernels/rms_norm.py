"""Root mean square norm with a weight per trial: one launch forwards and one backwards.

    y = w x / sqrt(mean(x^2) + epsilon)

Twin: `F.rms_norm` and the weight in `mamba/network.py`. A program treats some rows of one trial. The gradient of the
weight is written as parts, one per program, and added up by a second launch in a fixed order.
"""

from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.operation import operation

_ROWS = 4


def rms_norm(x_KPH: Tensor, weight_KH: Tensor, epsilon: float) -> Tensor:
    """Divide each row by its root mean square and multiply it with the trial's weight."""
    if torch.is_grad_enabled() and (x_KPH.requires_grad or weight_KH.requires_grad):
        return apply_function(_Norm, x_KPH, weight_KH, epsilon)
    return cast(Tensor, norm_forward(x_KPH, weight_KH, epsilon))


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_KPH: Tensor, weight_KH: Tensor, epsilon: float) -> Tensor:
        ctx.save_for_backward(x_KPH, weight_KH)
        ctx.epsilon = epsilon
        return cast(Tensor, norm_forward(x_KPH, weight_KH, epsilon))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KPH: Tensor) -> tuple[Tensor | None, ...]:
        g_x_KPH, parts = norm_backward(g_KPH.contiguous(), *ctx.saved_tensors, ctx.epsilon)
        return g_x_KPH, parts.sum(0), None


def _forward_result(x_KPH: Tensor, weight_KH: Tensor, epsilon: float) -> Tensor:
    return x_KPH.new_empty(x_KPH.shape)


@operation(fake=_forward_result)
def norm_forward(x_KPH: Tensor, weight_KH: Tensor, epsilon: float) -> Tensor:
    """Return the weighted rows."""
    y, (K, P, H) = _forward_result(x_KPH, weight_KH, epsilon), x_KPH.shape
    grid = triton.cdiv(P, _ROWS), K
    forward_kernel[grid](x_KPH.contiguous(), weight_KH.contiguous(), y, P, EPSILON=epsilon, **norm_options(H))
    return y


def _backward_results(g_KPH: Tensor, x_KPH: Tensor, weight_KH: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    K, P, H = x_KPH.shape
    return x_KPH.new_empty(K, P, H), x_KPH.new_empty(triton.cdiv(P, _ROWS), K, H)


@operation(fake=_backward_results)
def norm_backward(g_KPH: Tensor, x_KPH: Tensor, weight_KH: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return the gradient of the rows, and that of the weight as parts."""
    g_x, parts = _backward_results(g_KPH, x_KPH, weight_KH, epsilon)
    K, P, H = x_KPH.shape
    inputs = g_KPH, x_KPH.contiguous(), weight_KH.contiguous()
    backward_kernel[(len(parts), K)](*inputs, g_x, parts, P, EPSILON=epsilon, **norm_options(H))
    return g_x, parts


def norm_options(width: int) -> dict[str, int]:
    """Return the constants of both kernels."""
    return {"WIDTH": width, "COLUMNS": triton.next_power_of_2(width), "ROWS": _ROWS, "num_warps": 4}


@triton.jit
def forward_kernel(
    x, weight, y, P, EPSILON: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr
):
    """Treat some rows of one trial."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    k = tl.program_id(1).to(tl.int64)
    inside = (row < P) & (column < WIDTH)
    at = k * P * WIDTH + row * WIDTH + column
    w = tl.load(weight + k * WIDTH + column, column < WIDTH, 0.0)
    u = tl.load(x + at, inside, 0.0)
    size = tl.sqrt(tl.sum(u * u, 1, keep_dims=True) / WIDTH + EPSILON)
    tl.store(y + at, u / size * w, inside)


@triton.jit
def backward_kernel(
    g, x, weight, g_x, parts, P, EPSILON: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr
):
    """Treat some rows of one trial."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    k, K = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    inside = (row < P) & (column < WIDTH)
    at = k * P * WIDTH + row * WIDTH + column
    w = tl.load(weight + k * WIDTH + column, column < WIDTH, 0.0)
    u = tl.load(x + at, inside, 0.0)
    at_y = tl.load(g + at, inside, 0.0)
    size = tl.sqrt(tl.sum(u * u, 1, keep_dims=True) / WIDTH + EPSILON)
    u = u / size
    along = tl.sum(at_y * w * u, 1, keep_dims=True) / WIDTH
    tl.store(g_x + at, (at_y * w - u * along) / size, inside)
    part = parts + (tl.program_id(0) * K + k) * WIDTH + column
    tl.store(part, tl.sum(at_y * u, 0, keep_dims=True), column < WIDTH)
