"""Table of 2x2 rotations from their angles, in one launch, and its gradient in another. Twin: `rotation/network.py`."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.operation import operation

_ANGLES_AT_ONCE = 128


def rotation_table(theta_KRn: Tensor) -> Tensor:
    """Return the rotation by each angle as a table of transitions: (K, R, 2, 2, n)."""
    return apply_function(_Rotations, theta_KRn)


class _Rotations(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta_KRn: Tensor) -> Tensor:
        theta_KRn = theta_KRn.contiguous()
        ctx.save_for_backward(theta_KRn)
        table: Tensor = rotations(theta_KRn)
        return table

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_table_KRbbn: Tensor) -> Tensor:
        (theta_KRn,) = ctx.saved_tensors
        g_theta: Tensor = rotations_backward(theta_KRn, g_table_KRbbn.contiguous())
        return g_theta


def _table(theta_KRn: Tensor) -> Tensor:
    K, R, n = theta_KRn.shape
    return theta_KRn.new_empty(K, R, 2, 2, n)


@operation(fake=_table)
def rotations(theta_KRn: Tensor) -> Tensor:
    """Return the table."""
    table = _table(theta_KRn)
    n = theta_KRn.shape[2]
    grid = triton.cdiv(n, _ANGLES_AT_ONCE), theta_KRn.shape[0] * theta_KRn.shape[1]
    rotations_kernel[grid](theta_KRn, table, n, ANGLES=_ANGLES_AT_ONCE)
    return table


@operation(fake=lambda theta_KRn, g_table_KRbbn: torch.empty_like(theta_KRn))
def rotations_backward(theta_KRn: Tensor, g_table_KRbbn: Tensor) -> Tensor:
    """Return the gradient of the angles."""
    g_theta = torch.empty_like(theta_KRn)
    n = theta_KRn.shape[2]
    grid = triton.cdiv(n, _ANGLES_AT_ONCE), theta_KRn.shape[0] * theta_KRn.shape[1]
    rotations_back_kernel[grid](theta_KRn, g_table_KRbbn, g_theta, n, ANGLES=_ANGLES_AT_ONCE)
    return g_theta


@triton.jit
def rotations_kernel(theta, table, n, ANGLES: tl.constexpr):
    """Write the rotations of one token."""
    row, column = tl.program_id(1), tl.program_id(0) * ANGLES + tl.arange(0, ANGLES)
    angle = tl.load(theta + row * n + column, column < n, 0.0)
    cos, sin = tl.cos(angle), tl.sin(angle)
    to = table + row * (4 * n) + column
    tl.store(to, cos, column < n)
    tl.store(to + n, -sin, column < n)
    tl.store(to + 2 * n, sin, column < n)
    tl.store(to + 3 * n, cos, column < n)


@triton.jit
def rotations_back_kernel(theta, g_table, g_theta, n, ANGLES: tl.constexpr):
    """Write the gradients of the angles of one token."""
    row, column = tl.program_id(1), tl.program_id(0) * ANGLES + tl.arange(0, ANGLES)
    angle = tl.load(theta + row * n + column, column < n, 0.0)
    at = g_table + row * (4 * n) + column
    g_cos = tl.load(at, column < n, 0.0) + tl.load(at + 3 * n, column < n, 0.0)
    g_sin = tl.load(at + 2 * n, column < n, 0.0) - tl.load(at + n, column < n, 0.0)
    tl.store(g_theta + row * n + column, g_sin * tl.cos(angle) - g_cos * tl.sin(angle), column < n)
