"""Sums of vectors by token, in a fixed order: a product with a matrix of zeros and ones. Twin: `TokenSums`."""

import triton
import triton.language as tl
from torch import Tensor

from orch.models.gpu_kernels.operation import operation


def _result(tokens_KBT: Tensor, x_TKBG: Tensor, num_readable: int) -> Tensor:
    return x_TKBG.new_empty(x_TKBG.shape[1], num_readable, x_TKBG.shape[3])


@operation(fake=_result)
def token_sums(tokens_KBT: Tensor, x_TKBG: Tensor, num_readable: int) -> Tensor:
    """Sum vectors, one per sample and position, for every trial and token: (K, R, G). Those of padding are not read."""
    total = _result(tokens_KBT, x_TKBG, num_readable)
    (K, B, T), G = tokens_KBT.shape, x_TKBG.shape[3]
    options = sums_options(num_readable, G)
    grid = triton.cdiv(G, options["COLUMNS"]), triton.cdiv(num_readable, options["TOKENS"]), K
    sums_kernel[grid](tokens_KBT, x_TKBG, total, num_readable, T, B, G, *tokens_KBT.stride(), **options)
    return total


def sums_options(num_readable: int, num_columns: int) -> dict[str, int]:
    """Return the sizes of the tiles."""
    return {
        "COLUMNS": min(32, max(16, triton.next_power_of_2(num_columns))),
        "TOKENS": min(64, max(16, triton.next_power_of_2(num_readable))),
        "POSITIONS": 32,
        "num_warps": 4,
    }


@triton.jit
def sums_kernel(
    tokens, x, total, R, T, B, G, stride_k, stride_b, stride_t,
    COLUMNS: tl.constexpr, TOKENS: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """Sum some columns of one trial for some tokens."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
    k, K = tl.program_id(2), tl.num_programs(2)
    sums = tl.zeros((TOKENS, COLUMNS), tl.float32)
    for start in range(0, T * B, POSITIONS):
        p = start + tl.arange(0, POSITIONS)
        t, s = p // B, p % B
        token = tl.load(tokens + k * stride_k + s * stride_b + t * stride_t, p < T * B, R)
        at = ((t * K + k) * B + s)[:, None] * G + column[None, :]
        which = (row[:, None] == token[None, :]).to(tl.float32)
        values = tl.load(x + at, (token < R)[:, None] & (column < G)[None, :], 0.0)
        sums = tl.dot(which, values, sums, input_precision="ieee")
    to = (k * R + row[:, None]) * G + column[None, :]
    tl.store(total + to, sums, (row < R)[:, None] & (column < G)[None, :])
