"""Scan of block-diagonal transitions with small blocks: all positions in one launch. Twin: `recurrence/blocks.py`.

A warp reads one sample. It looks transitions up by token and leaves padding out. A state is a tile of components by
blocks in its registers, so a product within blocks needs no exchange between threads; sizes are sums over the warp.
Backward reads the states that forward kept and computes what they were divided by again.

The gradient of the table is a sum over positions by token. It is a product with a matrix of zeros and ones, in a fixed
order, in a second launch: the same numbers every time, which additions from all samples to one place would not give.
"""

from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.normalise import normalise, normalise_back
from orch.models.gpu_kernels.operation import operation
from orch.models.gpu_kernels.token_sums import token_sums
from orch.models.recurrence.normalisation import Normalisation

_ENTRIES_PER_THREAD = 64
"""Entries of a transition that a thread may hold in its registers."""


def scan_blocks(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    every_step: bool,
    additive_KRH: Tensor | None,
) -> Tensor:
    """Return the final states, (K, B, H), normalised at every step or only at the last."""
    tensors = [each for each in (table_KRbbn, h0_KH, additive_KRH) if each is not None]
    additive_KRH = None if additive_KRH is None else additive_KRH.contiguous()
    inputs = (
        *(table_KRbbn.contiguous(), tokens_KBT, h0_KH.contiguous(), additive_KRH),
        *(normalisation.kind, every_step),
    )
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return apply_function(_Scan, *inputs)
    final_KBH: Tensor = scan_forward(*inputs, False)[0]
    return final_KBH


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        table_KRbbn, tokens_KBT, _, additive_KRH, *ctx.options = inputs
        final_KBH, states_TKBH = scan_forward(*inputs, True)
        ctx.save_for_backward(table_KRbbn, tokens_KBT, additive_KRH, states_TKBH)
        return cast(Tensor, final_KBH)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KBH: Tensor) -> tuple[Tensor | None, ...]:
        table_KRbbn, tokens_KBT, additive_KRH, states_TKBH = ctx.saved_tensors
        R, b = table_KRbbn.shape[1:3]
        gradients_TKBH, g_h0_KBH = scan_backward(
            table_KRbbn, tokens_KBT, additive_KRH, states_TKBH, g_KBH.contiguous(), *ctx.options
        )
        g_table = outer_products(tokens_KBT, states_TKBH, gradients_TKBH, R, b)
        g_additive = None if additive_KRH is None else token_sums(tokens_KBT, gradients_TKBH, R)
        return g_table, None, g_h0_KBH.sum(1), g_additive, None, None


def tile_options(b: int, n: int) -> dict[str, int]:
    """Return the sizes of the tiles for `n` blocks of size `b`, and the number of warps that share one."""
    padded_size, padded_blocks = triton.next_power_of_2(b), triton.next_power_of_2(n)
    entries_per_thread = padded_size * padded_size * padded_blocks // 32
    return {
        "SIZE": b,
        "BLOCKS": n,
        "PADDED_SIZE": padded_size,
        "PADDED_BLOCKS": padded_blocks,
        "num_warps": min(8, max(1, entries_per_thread // _ENTRIES_PER_THREAD)),
        # So many that nothing is written to memory: left to itself, the assembler prefers 96 and spills.
        "maxnreg": 128,
    }


def _scan_options(table_KRbbn: Tensor, additive_KRH: Tensor | None, kind: str, every_step: bool) -> dict[str, Any]:
    options = {"KIND": kind, "EVERY_STEP": every_step, "ADDITIVE": additive_KRH is not None}
    return options | tile_options(*table_KRbbn.shape[3:])


def _forward_results(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    additive_KRH: Tensor | None,
    kind: str,
    every_step: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    (K, B, T), H = tokens_KBT.shape, h0_KH.shape[1]
    return h0_KH.new_empty(K, B, H), h0_KH.new_empty(T + 1 if keep else 0, K, B, H)


@operation(fake=_forward_results)
def scan_forward(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    additive_KRH: Tensor | None,
    kind: str,
    every_step: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """Return the final states and, if `keep`, those before every position and before the last division."""
    final, states = _forward_results(table_KRbbn, tokens_KBT, h0_KH, additive_KRH, kind, every_step, keep)
    K, B, T = tokens_KBT.shape
    additive = final if additive_KRH is None else additive_KRH
    forward_kernel[(B, K)](
        *(table_KRbbn, additive, tokens_KBT, h0_KH, states, final),
        *(table_KRbbn.shape[1], T, *tokens_KBT.stride()),
        KEEP=keep,
        **_scan_options(table_KRbbn, additive_KRH, kind, every_step),
    )
    return final, states


def _backward_results(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    additive_KRH: Tensor | None,
    states_TKBH: Tensor,
    g_KBH: Tensor,
    kind: str,
    every_step: bool,
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(states_TKBH[1:]), torch.empty_like(g_KBH)


@operation(fake=_backward_results)
def scan_backward(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    additive_KRH: Tensor | None,
    states_TKBH: Tensor,
    g_KBH: Tensor,
    kind: str,
    every_step: bool,
) -> tuple[Tensor, Tensor]:
    """Return the gradient before the division at every position but padding, and that at h_0 for every sample."""
    gradients, g_h0 = _backward_results(table_KRbbn, tokens_KBT, additive_KRH, states_TKBH, g_KBH, kind, every_step)
    K, B, T = tokens_KBT.shape
    additive = g_KBH if additive_KRH is None else additive_KRH
    backward_kernel[(B, K)](
        *(table_KRbbn, additive, tokens_KBT, states_TKBH, g_KBH, gradients, g_h0),
        *(table_KRbbn.shape[1], T, *tokens_KBT.stride()),
        **_scan_options(table_KRbbn, additive_KRH, kind, every_step),
    )
    return gradients, g_h0


def _products_result(tokens_KBT: Tensor, states_TKBH: Tensor, gradients_TKBH: Tensor, R: int, b: int) -> Tensor:
    _, K, _, H = states_TKBH.shape
    return states_TKBH.new_empty(K, R, b, b, H // b)


@operation(fake=_products_result)
def outer_products(tokens_KBT: Tensor, states_TKBH: Tensor, gradients_TKBH: Tensor, R: int, b: int) -> Tensor:
    """Return the gradient of the table: sums by token of gradients times the states before them."""
    g_table = _products_result(tokens_KBT, states_TKBH, gradients_TKBH, R, b)
    (K, B, T), n = tokens_KBT.shape, g_table.shape[4]
    options = products_options(R, b, n)
    grid = triton.cdiv(n, options["BLOCKS_AT_ONCE"]) * triton.cdiv(R, options["TOKENS_AT_ONCE"]), b * b, K
    products_kernel[grid](*(tokens_KBT, states_TKBH, gradients_TKBH, g_table, R, T, B, *tokens_KBT.stride()), **options)
    return g_table


def products_options(R: int, b: int, n: int) -> dict[str, int]:
    """Return the sizes of the tiles that sum outer products."""
    return {
        "SIZE": b,
        "BLOCKS": n,
        "BLOCKS_AT_ONCE": min(32, max(16, triton.next_power_of_2(n))),
        "TOKENS_AT_ONCE": min(64, max(16, triton.next_power_of_2(R))),
        "POSITIONS_AT_ONCE": 32,
        "num_warps": 4,
    }


@triton.jit
def forward_kernel(
    table, additive, tokens, h0, states, final, R, T, stride_k, stride_b, stride_t,
    SIZE: tl.constexpr, BLOCKS: tl.constexpr, PADDED_SIZE: tl.constexpr, PADDED_BLOCKS: tl.constexpr,
    KIND: tl.constexpr, EVERY_STEP: tl.constexpr, ADDITIVE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Read one sample of one trial."""
    s, k, B, K = tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    place, inside, entry, within = places(SIZE, BLOCKS, PADDED_SIZE, PADDED_BLOCKS)
    h = tl.load(h0 + k * WIDTH + place, inside, 0.0)
    for t in range(T):
        if KEEP:
            tl.store(states + ((t * K + k) * B + s) * WIDTH + place, h, inside)
        token = tl.load(tokens + k * stride_k + s * stride_b + t * stride_t)
        if token < R:
            row = k * R + token
            a = tl.load(table + row * (SIZE * WIDTH) + entry, within, 0.0)
            h = tl.sum(a * h[None, :, :], 1)
            if ADDITIVE:
                h += tl.load(additive + row * WIDTH + place, inside, 0.0)
            if EVERY_STEP and KIND != "none":
                h, _ = normalise(h, KIND, False, WIDTH, SIZE)
    if KEEP:
        tl.store(states + ((T * K + k) * B + s) * WIDTH + place, h, inside)
    if not EVERY_STEP and KIND != "none":
        h, _ = normalise(h, KIND, True, WIDTH, SIZE)
    tl.store(final + (k * B + s) * WIDTH + place, h, inside)


@triton.jit
def backward_kernel(
    table, additive, tokens, states, g_final, gradients, g_h0, R, T, stride_k, stride_b, stride_t,
    SIZE: tl.constexpr, BLOCKS: tl.constexpr, PADDED_SIZE: tl.constexpr, PADDED_BLOCKS: tl.constexpr,
    KIND: tl.constexpr, EVERY_STEP: tl.constexpr, ADDITIVE: tl.constexpr,
):  # fmt: skip
    """Go back through one sample of one trial."""
    s, k, B, K = tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    place, inside, entry, within = places(SIZE, BLOCKS, PADDED_SIZE, PADDED_BLOCKS)
    g = tl.load(g_final + (k * B + s) * WIDTH + place, inside, 0.0)
    if not EVERY_STEP and KIND != "none":
        y, size = normalise(
            tl.load(states + ((T * K + k) * B + s) * WIDTH + place, inside, 0.0), KIND, True, WIDTH, SIZE
        )
        g = normalise_back(g, y, size, KIND, True, WIDTH)
    for step in range(T):
        t = T - 1 - step
        token = tl.load(tokens + k * stride_k + s * stride_b + t * stride_t)
        if token < R:
            row = k * R + token
            at = ((t * K + k) * B + s) * WIDTH
            a = tl.load(table + row * (SIZE * WIDTH) + entry, within, 0.0)
            if EVERY_STEP and KIND != "none":
                h = tl.load(states + at + place, inside, 0.0)
                u = tl.sum(a * h[None, :, :], 1)
                if ADDITIVE:
                    u += tl.load(additive + row * WIDTH + place, inside, 0.0)
                y, size = normalise(u, KIND, False, WIDTH, SIZE)
                g = normalise_back(g, y, size, KIND, False, WIDTH)
            tl.store(gradients + at + place, g, inside)
            g = tl.sum(a * g[:, None, :], 0)
    tl.store(g_h0 + (k * B + s) * WIDTH + place, g, inside)


@triton.jit
def places(SIZE: tl.constexpr, BLOCKS: tl.constexpr, PADDED_SIZE: tl.constexpr, PADDED_BLOCKS: tl.constexpr):
    """Return where the entries of a state and of a transition lie, and which entries of their tiles there are."""
    i, n = tl.arange(0, PADDED_SIZE), tl.arange(0, PADDED_BLOCKS)
    place = i[:, None] * BLOCKS + n[None, :]
    inside = (i[:, None] < SIZE) & (n[None, :] < BLOCKS)
    entry = (i[:, None, None] * SIZE + i[None, :, None]) * BLOCKS + n[None, None, :]
    within = (i[:, None, None] < SIZE) & (i[None, :, None] < SIZE) & (n[None, None, :] < BLOCKS)
    return place, inside, entry, within


@triton.jit
def products_kernel(
    tokens, states, gradients, g_table, R, T, B, stride_k, stride_b, stride_t,
    SIZE: tl.constexpr, BLOCKS: tl.constexpr,
    BLOCKS_AT_ONCE: tl.constexpr, TOKENS_AT_ONCE: tl.constexpr, POSITIONS_AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Sum the products at one entry of all blocks, for all tokens."""
    parts = tl.cdiv(BLOCKS, BLOCKS_AT_ONCE)
    part, first = tl.program_id(0) % parts, tl.program_id(0) // parts * TOKENS_AT_ONCE
    i, j = tl.program_id(1) // SIZE, tl.program_id(1) % SIZE
    k, K = tl.program_id(2), tl.num_programs(2)
    WIDTH: tl.constexpr = SIZE * BLOCKS
    n = part * BLOCKS_AT_ONCE + tl.arange(0, BLOCKS_AT_ONCE)
    row = first + tl.arange(0, TOKENS_AT_ONCE)
    total = tl.zeros((TOKENS_AT_ONCE, BLOCKS_AT_ONCE), tl.float32)
    for start in range(0, T * B, POSITIONS_AT_ONCE):
        p = start + tl.arange(0, POSITIONS_AT_ONCE)
        t, s = p // B, p % B
        token = tl.load(tokens + k * stride_k + s * stride_b + t * stride_t, p < T * B, R)
        at = ((t * K + k) * B + s)[:, None] * WIDTH + n[None, :]
        # Nothing was written where there is padding.
        there = (token < R)[:, None] & (n < BLOCKS)[None, :]
        g = tl.load(gradients + at + i * BLOCKS, there, 0.0)
        h = tl.load(states + at + j * BLOCKS, there, 0.0)
        which = (row[:, None] == token[None, :]).to(tl.float32)
        total = tl.dot(which, g * h, total, input_precision="ieee")
    to = ((k * R + row[:, None]) * SIZE * SIZE + i * SIZE + j) * BLOCKS + n[None, :]
    tl.store(g_table + to, total, (row < R)[:, None] & (n < BLOCKS)[None, :])
