"""Adam for the weight of a token table, in one pass over memory: its gradient is a sum of few outer products.

Twins: `OuterProducts.written_out`, then the fused Adam of torch. A program computes a tile of the gradient in registers
and updates the weights and both moments there, so that the gradient, as large as the weight, is never in memory. Rates
and the number of steps are read from the device, so that a recorded step goes on counting.
"""

import math

import triton
import triton.language as tl
from torch import Tensor

from orch.models.gpu_kernels.operation import operation


@operation(fake=lambda *arguments: None, changes=("parameter", "first", "second"))
def adam_on_products(
    parameter: Tensor,
    first: Tensor,
    second: Tensor,
    g_KRO: Tensor,
    x_KRD: Tensor,
    rate_K: Tensor,
    step: Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> None:
    """Update a parameter (K, *O, D) and its moments in place. `step` counts this update already."""
    (K, R, D), outputs = x_KRD.shape, g_KRO.shape[2]
    options = adam_options(D)
    grid = triton.cdiv(outputs, options["ROWS"]), triton.cdiv(D, options["COLUMNS"]), K
    adam_kernel[grid](
        *(parameter, first, second, g_KRO, x_KRD, rate_K, step, R, outputs, D, *x_KRD.stride()[:2]),
        LOG_BETA1=math.log(beta1),
        LOG_BETA2=math.log(beta2),
        BETA2=beta2,
        NEW1=1 - beta1,
        NEW2=1 - beta2,
        EPSILON=epsilon,
        **options,
    )


def adam_options(num_columns: int) -> dict[str, int]:
    """Return the sizes of a tile: eight entries for each of 128 threads, whatever the number of columns."""
    columns = min(128, triton.next_power_of_2(num_columns))
    return {"ROWS": 1024 // columns, "COLUMNS": columns, "num_warps": 4}


@triton.jit
def adam_kernel(
    parameter, first, second, g, x, rate, step, R, outputs, D, stride_xk, stride_xr,
    LOG_BETA1: tl.constexpr, LOG_BETA2: tl.constexpr, BETA2: tl.constexpr,
    NEW1: tl.constexpr, NEW2: tl.constexpr, EPSILON: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Update a tile of one trial's parameter."""
    k = tl.program_id(2).to(tl.int64)  # a pack of large models has more than 2^31 weights
    o = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    gradient = tl.zeros((ROWS, COLUMNS), tl.float32)
    for r in range(R):
        g_o = tl.load(g + (k * R + r) * outputs + o, o < outputs, 0.0)
        x_d = tl.load(x + k * stride_xk + r * stride_xr + d, d < D, 0.0)
        gradient += g_o[:, None] * x_d[None, :]
    at = (k * outputs + o[:, None]) * D + d[None, :]
    inside = (o < outputs)[:, None] & (d < D)[None, :]
    mean = tl.load(first + at, inside, 0.0)
    mean += NEW1 * (gradient - mean)
    tl.store(first + at, mean, inside)
    square = BETA2 * tl.load(second + at, inside, 0.0) + NEW2 * gradient * gradient
    tl.store(second + at, square, inside)
    # In double precision: after one step 1 - 0.999 would have four digits.
    count = tl.load(step).to(tl.float64)
    correction1, correction2 = 1 - tl.exp(count * LOG_BETA1), 1 - tl.exp(count * LOG_BETA2)
    size = tl.load(rate + k) / correction1.to(tl.float32)
    root = tl.sqrt(correction2.to(tl.float32))
    weight = tl.load(parameter + at, inside, 0.0)
    tl.store(parameter + at, weight - size * mean / (tl.sqrt(square) / root + EPSILON), inside)
