"""Scan of block-diagonal transitions with large blocks, up to the full model: one launch per position and direction.

Twin: `GatheredBlocks` in `recurrence/large_blocks.py`, which copies the transition of every sample at every position.
Here a program multiplies some rows of one token's transition with the states of all samples that read the token, so
that a transition comes from memory once per position. Samples are grouped by token once for all positions.

A launch writes states before they are divided, because one program has only a part of a state. The next launch, which
reads whole states, divides them. In backward, likewise, the gradient passes the division where it is read. Padding is
in no group; a state is copied to the final ones where its sample ends.
"""

from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.division import divide, divide_backward
from orch.models.gpu_kernels.operation import operation
from orch.models.gpu_kernels.token_groups import group_by_token
from orch.models.gpu_kernels.token_sums import token_sums
from orch.models.recurrence.normalisation import TINY, Normalisation

_TINY = tl.constexpr(TINY)


def scan_groups(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    every_step: bool,
    additive_KRH: Tensor | None,
) -> Tensor:
    """Return the final states, (K, B, H), normalised at every step or only at the last.

    Every sample must read a token at the first position, as all do: padding comes last.
    """
    tensors = [each for each in (table_KRbbn, h0_KH, additive_KRH) if each is not None]
    additive_KRH = None if additive_KRH is None else additive_KRH.contiguous()
    scan = _Scan(tokens_KBT, table_KRbbn.shape, normalisation.kind, every_step)
    inputs = table_KRbbn.contiguous(), h0_KH.contiguous(), additive_KRH
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return apply_function(_ScanFunction, scan, *inputs)
    return scan.forward(*inputs, keep=False)


class _ScanFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scan: "_Scan", table_KRbbn: Tensor, h0_KH: Tensor, additive_KRH: Tensor | None) -> Tensor:
        ctx.scan, ctx.has_additive = scan, additive_KRH is not None
        ctx.save_for_backward(table_KRbbn)
        return scan.forward(table_KRbbn, h0_KH, additive_KRH, keep=True)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KBH: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.scan.backward(*ctx.saved_tensors, g_KBH.contiguous(), ctx.has_additive)


class _Scan:
    """One pass over a batch: `forward`, then `backward` if states were kept."""

    def __init__(self, tokens_KBT: Tensor, table_shape: torch.Size, kind: str, every_step: bool):
        self._tokens_KBT, self._R, self._b = tokens_KBT, table_shape[1], table_shape[2]
        self._each, self._last = (kind, kind) if every_step else ("none", kind)
        self._groups = group_by_token(tokens_KBT, self._R)

    def forward(self, table_KRbbn: Tensor, h0_KH: Tensor, additive_KRH: Tensor | None, keep: bool) -> Tensor:
        """Return the final states."""
        (K, B, T), H = self._tokens_KBT.shape, h0_KH.shape[1]
        states_TKBH = h0_KH.new_empty(T if keep else 2, K, B, H)
        inputs_TKBH = torch.empty_like(states_TKBH) if keep else None
        u_KBH = h0_KH.new_empty(K, B, H)
        for t in range(T):
            read_forward(
                *(table_KRbbn, additive_KRH, self._tokens_KBT, *self._groups, h0_KH),
                *(states_TKBH, inputs_TKBH, u_KBH, t, self._each),
            )
        self._kept = states_TKBH, inputs_TKBH, u_KBH
        if self._last == "none":
            return u_KBH.clone() if keep else u_KBH
        return cast(Tensor, divide(u_KBH, self._b, self._last, self._each == "none"))

    def backward(self, table_KRbbn: Tensor, g_KBH: Tensor, has_additive: bool) -> tuple[Tensor | None, ...]:
        """Return the gradients of the table, of h_0 and of the additive term."""
        states_TKBH, inputs_TKBH, u_KBH = self._kept
        del self._kept
        if self._each == "none" and self._last != "none":
            g_KBH = divide_backward(g_KBH, u_KBH, self._b, self._last, True)
        gradients_TKBH = torch.empty_like(states_TKBH)
        before_2KBH = g_KBH.new_empty(2, *g_KBH.shape)
        for t in reversed(range(len(states_TKBH))):
            read_backward(
                *(table_KRbbn, self._tokens_KBT, *self._groups, states_TKBH, g_KBH),
                *(before_2KBH, gradients_TKBH, t, self._each),
            )
        g_table = group_products(*self._groups, inputs_TKBH, gradients_TKBH, self._b)
        g_additive = token_sums(self._tokens_KBT, gradients_TKBH, self._R) if has_additive else None
        return g_table, before_2KBH[0].sum(1), g_additive


def read_options(num_samples: int, num_readable: int, b: int) -> dict[str, int]:
    """Return the sizes of the tiles that multiply states with a token's transition."""
    return {
        # With a large vocabulary few samples read the same token at the same position.
        "SAMPLES": 8 if num_samples >= 4 * num_readable else 2,
        "ROWS": min(16, triton.next_power_of_2(b)),
        "COLUMNS": 32,
        "num_warps": 4,
    }


@operation(fake=lambda *arguments: None, changes=("states_TKBH", "inputs_TKBH", "u_KBH"))
def read_forward(
    table_KRbbn: Tensor,
    additive_KRH: Tensor | None,
    tokens_KBT: Tensor,
    order_KP: Tensor,
    start_KRT: Tensor,
    h0_KH: Tensor,
    states_TKBH: Tensor,
    inputs_TKBH: Tensor | None,
    u_KBH: Tensor,
    t: int,
    kind: str,
) -> None:
    """Read the tokens at position t: write the undivided states after it, and to `u_KBH` those of samples that end.

    The divided states before it are written to `inputs_TKBH`. Without it only two positions of states are kept.
    """
    (K, B, T), (_, R, b, _, n) = tokens_KBT.shape, table_KRbbn.shape
    options = read_options(B, R, b)
    num_slots = len(states_TKBH)
    before, strides = states_TKBH[(t - 1) % num_slots], (B * b * n, b * n)
    if t == 0:
        before, strides = h0_KH, (b * n, 0)
    forward_kernel[(triton.cdiv(b, options["ROWS"]) * n, R, K)](
        *(table_KRbbn, table_KRbbn if additive_KRH is None else additive_KRH, tokens_KBT, order_KP, start_KRT),
        *(before, states_TKBH[t % num_slots], u_KBH if inputs_TKBH is None else inputs_TKBH[t], u_KBH),
        *(t, T, B, *strides, *tokens_KBT.stride()),
        SIZE=b,
        BLOCKS=n,
        KIND="none" if t == 0 else kind,
        ADDITIVE=additive_KRH is not None,
        KEEP=inputs_TKBH is not None,
        **options,
    )


@operation(fake=lambda *arguments: None, changes=("before_2KBH", "gradients_TKBH"))
def read_backward(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    order_KP: Tensor,
    start_KRT: Tensor,
    states_TKBH: Tensor,
    g_KBH: Tensor,
    before_2KBH: Tensor,
    gradients_TKBH: Tensor,
    t: int,
    kind: str,
) -> None:
    """Go back through position t: write the gradient before its division, and that of the states before it.

    The latter is in `before_2KBH[t % 2]`. `g_KBH` is the gradient where a sample ends.
    """
    (K, B, T), (_, R, b, _, n) = tokens_KBT.shape, table_KRbbn.shape
    options = read_options(B, R, b)
    backward_kernel[(triton.cdiv(b, options["ROWS"]) * n, R, K)](
        *(table_KRbbn, tokens_KBT, order_KP, start_KRT, states_TKBH[t], g_KBH, before_2KBH[(t + 1) % 2]),
        *(before_2KBH[t % 2], gradients_TKBH[t], t, T, B, *tokens_KBT.stride()),
        SIZE=b,
        BLOCKS=n,
        KIND=kind,
        **options,
    )


def _products_result(
    order_KP: Tensor, start_KRT: Tensor, inputs_TKBH: Tensor, gradients_TKBH: Tensor, b: int
) -> Tensor:
    (K, R, _), H = start_KRT.shape, inputs_TKBH.shape[3]
    return inputs_TKBH.new_empty(K, R, b, b, H // b)


@operation(fake=_products_result)
def group_products(order_KP: Tensor, start_KRT: Tensor, inputs_TKBH: Tensor, gradients_TKBH: Tensor, b: int) -> Tensor:
    """Return the gradient of the table: sums by token of gradients times the states before them."""
    g_table = _products_result(order_KP, start_KRT, inputs_TKBH, gradients_TKBH, b)
    (K, R, _, _, n), (T, _, B, _) = g_table.shape, inputs_TKBH.shape
    options = products_options(b)
    tiles = triton.cdiv(b, options["ROWS"]) * triton.cdiv(b, options["COLUMNS"])
    products_kernel[(tiles * n, R, K)](
        *(order_KP, start_KRT, inputs_TKBH, gradients_TKBH, g_table, T, B), SIZE=b, BLOCKS=n, **options
    )
    return g_table


def products_options(b: int) -> dict[str, int]:
    """Return the sizes of the tiles that sum outer products."""
    side = min(64, max(16, triton.next_power_of_2(b)))
    return {"POSITIONS": 16, "ROWS": side, "COLUMNS": side, "num_warps": 4}


@triton.jit
def divisor(rows, there, m, KIND: tl.constexpr, SIZE: tl.constexpr, BLOCKS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the size of each row, or of its block `m`: see `normalise.py`."""
    squares = tl.zeros(rows.shape, tl.float32)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    if KIND == "block":
        for first in range(0, SIZE, COLUMNS):
            j = first + tl.arange(0, COLUMNS)
            x = tl.load(rows[:, None] + (j * BLOCKS + m)[None, :], there[:, None] & (j < SIZE)[None, :], 0.0)
            squares += tl.sum(x * x, 1)
    else:
        for first in range(0, WIDTH, COLUMNS):
            j = first + tl.arange(0, COLUMNS)
            x = tl.load(rows[:, None] + j[None, :], there[:, None] & (j < WIDTH)[None, :], 0.0)
            squares += tl.sum(x * x, 1)
    if KIND == "rms":
        squares = squares / WIDTH
    size = tl.sqrt(squares)
    return tl.where(size < _TINY, _TINY, size)


@triton.jit(do_not_specialize=["t"])  # or it would be compiled again for positions 1 and 16
def forward_kernel(
    table, additive, tokens, order, start, before, after, inputs, final,
    t, T, B, stride_before_k, stride_before_b, stride_k, stride_b, stride_t,
    SIZE: tl.constexpr, BLOCKS: tl.constexpr, KIND: tl.constexpr, ADDITIVE: tl.constexpr, KEEP: tl.constexpr,
    SAMPLES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute some components of one block, for all samples of one trial that read one token."""
    m, tile = tl.program_id(0) % BLOCKS, tl.program_id(0) // BLOCKS
    r, R, k = tl.program_id(1), tl.num_programs(1), tl.program_id(2)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    i = tile * ROWS + tl.arange(0, ROWS)
    matrix = table + (k * R + r).to(tl.int64) * (SIZE * WIDTH)
    begin = tl.load(start + (k * R + r) * (T + 1) + t)
    end = tl.load(start + (k * R + r) * (T + 1) + t + 1)
    for first in range(begin, end, SAMPLES):
        which = first + tl.arange(0, SAMPLES)
        there = which < end
        s = tl.load(order + k * (T * B) + which, there, 0) % B
        rows = before + k * stride_before_k + s * stride_before_b
        if KIND != "none":
            size = divisor(rows, there, m, KIND, SIZE, BLOCKS, COLUMNS)
        total = tl.zeros((SAMPLES, ROWS, COLUMNS), tl.float32)
        for column in range(0, SIZE, COLUMNS):
            j = column + tl.arange(0, COLUMNS)
            given = there[:, None] & (j < SIZE)[None, :]
            y = tl.load(rows[:, None] + (j * BLOCKS + m)[None, :], given, 0.0)
            if KIND != "none":
                y = y / size[:, None]
            if KEEP and tile == 0:
                tl.store(inputs + ((k * B + s) * WIDTH)[:, None] + (j * BLOCKS + m)[None, :], y, given)
            at = (i[:, None] * SIZE + j[None, :]) * BLOCKS + m
            a = tl.load(matrix + at, (i < SIZE)[:, None] & (j < SIZE)[None, :], 0.0)
            total += y[:, None, :] * a[None, :, :]
        u = tl.sum(total, 2)
        if ADDITIVE:
            u += tl.load(additive + (k * R + r) * WIDTH + i * BLOCKS + m, i < SIZE, 0.0)[None, :]
        to = ((k * B + s) * WIDTH)[:, None] + (i * BLOCKS + m)[None, :]
        inside = there[:, None] & (i < SIZE)[None, :]
        tl.store(after + to, u, inside)
        following = tl.load(tokens + k * stride_k + s * stride_b + (t + 1) * stride_t, there & (t + 1 < T), R)
        tl.store(final + to, u, inside & (following >= R)[:, None])


@triton.jit(do_not_specialize=["t"])
def backward_kernel(
    table, tokens, order, start, states, g_final, g_after, g_before, gradients,
    t, T, B, stride_k, stride_b, stride_t,
    SIZE: tl.constexpr, BLOCKS: tl.constexpr, KIND: tl.constexpr,
    SAMPLES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute some components of one block's gradient, for all samples of one trial that read one token."""
    m, tile = tl.program_id(0) % BLOCKS, tl.program_id(0) // BLOCKS
    r, R, k = tl.program_id(1), tl.num_programs(1), tl.program_id(2)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    j = tile * ROWS + tl.arange(0, ROWS)
    matrix = table + (k * R + r).to(tl.int64) * (SIZE * WIDTH)
    begin = tl.load(start + (k * R + r) * (T + 1) + t)
    end = tl.load(start + (k * R + r) * (T + 1) + t + 1)
    for first in range(begin, end, SAMPLES):
        which = first + tl.arange(0, SAMPLES)
        there = which < end
        s = tl.load(order + k * (T * B) + which, there, 0) % B
        following = tl.load(tokens + k * stride_k + s * stride_b + (t + 1) * stride_t, there & (t + 1 < T), R)
        row = (k * B + s) * WIDTH
        g_rows = tl.where(following >= R, g_final + row, g_after + row)
        if KIND != "none":
            size = divisor(states + row, there, m, KIND, SIZE, BLOCKS, COLUMNS)
            along = tl.zeros((SAMPLES,), tl.float32)
            if KIND == "block":
                for column in range(0, SIZE, COLUMNS):
                    i = column + tl.arange(0, COLUMNS)
                    at, given = (i * BLOCKS + m)[None, :], there[:, None] & (i < SIZE)[None, :]
                    y = tl.load((states + row)[:, None] + at, given, 0.0) / size[:, None]
                    along += tl.sum(tl.load(g_rows[:, None] + at, given, 0.0) * y, 1)
            else:
                for column in range(0, WIDTH, COLUMNS):
                    i = column + tl.arange(0, COLUMNS)
                    at, given = i[None, :], there[:, None] & (i < WIDTH)[None, :]
                    y = tl.load((states + row)[:, None] + at, given, 0.0) / size[:, None]
                    along += tl.sum(tl.load(g_rows[:, None] + at, given, 0.0) * y, 1)
            if KIND == "rms":
                along = along / WIDTH
        total = tl.zeros((SAMPLES, ROWS, COLUMNS), tl.float32)
        for column in range(0, SIZE, COLUMNS):
            i = column + tl.arange(0, COLUMNS)
            at, given = (i * BLOCKS + m)[None, :], there[:, None] & (i < SIZE)[None, :]
            g = tl.load(g_rows[:, None] + at, given, 0.0)
            if KIND != "none":
                y = tl.load((states + row)[:, None] + at, given, 0.0) / size[:, None]
                g = (g - y * along[:, None]) / size[:, None]
            if tile == 0:
                tl.store(gradients + row[:, None] + at, g, given)
            entry = (i[None, :] * SIZE + j[:, None]) * BLOCKS + m
            a = tl.load(matrix + entry, (j < SIZE)[:, None] & (i < SIZE)[None, :], 0.0)
            total += g[:, None, :] * a[None, :, :]
        to = row[:, None] + (j * BLOCKS + m)[None, :]
        tl.store(g_before + to, tl.sum(total, 2), there[:, None] & (j < SIZE)[None, :])


@triton.jit
def products_kernel(
    order, start, inputs, gradients, g_table, T, B,
    SIZE: tl.constexpr, BLOCKS: tl.constexpr,
    POSITIONS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum a tile of one block's outer products over the positions of one trial that have one token."""
    m, tile = tl.program_id(0) % BLOCKS, tl.program_id(0) // BLOCKS
    r, R, k, K = tl.program_id(1), tl.num_programs(1), tl.program_id(2), tl.num_programs(2)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    across = tl.cdiv(SIZE, COLUMNS)
    i = tile // across * ROWS + tl.arange(0, ROWS)
    j = tile % across * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.load(start + (k * R + r) * (T + 1))
    end = tl.load(start + (k * R + r) * (T + 1) + T)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(begin, end, POSITIONS):
        which = first + tl.arange(0, POSITIONS)
        p = tl.load(order + k * (T * B) + which, which < end, 0)
        row = ((p // B * K + k) * B + p % B) * WIDTH + m
        g = tl.load(gradients + row[None, :] + i[:, None] * BLOCKS, (i < SIZE)[:, None] & (which < end)[None, :], 0.0)
        h = tl.load(inputs + row[:, None] + j[None, :] * BLOCKS, (which < end)[:, None] & (j < SIZE)[None, :], 0.0)
        total = tl.dot(g, h, total, input_precision="ieee")
    at = ((k * R + r).to(tl.int64) * SIZE + i[:, None]) * WIDTH + j[None, :] * BLOCKS + m
    tl.store(g_table + at, total, (i < SIZE)[:, None] & (j < SIZE)[None, :])
