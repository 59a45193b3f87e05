"""Normalisation of states in one launch, and its gradient in another. Twin: `recurrence/normalisation.py`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from orch.models.gpu_kernels.normalise import normalise, normalise_back
from orch.models.gpu_kernels.operation import operation


@operation(fake=lambda u_KBH, b, kind, final: torch.empty_like(u_KBH))
def divide(u_KBH: Tensor, b: int, kind: str, final: bool) -> Tensor:
    """Return states of blocks of size `b` divided by their sizes."""
    y_KBH = torch.empty_like(u_KBH)
    divide_kernel[(u_KBH.shape[:2].numel(),)](u_KBH, y_KBH, **division_options(b, u_KBH.shape[2], kind, final))
    return y_KBH


@operation(fake=lambda g_KBH, u_KBH, b, kind, final: torch.empty_like(u_KBH))
def divide_backward(g_KBH: Tensor, u_KBH: Tensor, b: int, kind: str, final: bool) -> Tensor:
    """Return the gradient before the division, given that after it."""
    g_u_KBH = torch.empty_like(u_KBH)
    options = division_options(b, u_KBH.shape[2], kind, final)
    divide_back_kernel[(u_KBH.shape[:2].numel(),)](g_KBH, u_KBH, g_u_KBH, **options)
    return g_u_KBH


def division_options(b: int, width: int, kind: str, final: bool) -> dict[str, int | str | bool]:
    """Return the sizes of the tiles and what is divided by what."""
    n = width // b
    return {
        "SIZE": b,
        "BLOCKS": n,
        "PADDED_SIZE": triton.next_power_of_2(b),
        "PADDED_BLOCKS": triton.next_power_of_2(n),
        "KIND": kind,
        "FINAL": final,
        "num_warps": 1,
    }


@triton.jit
def divide_kernel(
    u, y, SIZE: tl.constexpr, BLOCKS: tl.constexpr, PADDED_SIZE: tl.constexpr, PADDED_BLOCKS: tl.constexpr,
    KIND: tl.constexpr, FINAL: tl.constexpr,
):  # fmt: skip
    """Divide one state."""
    i, n = tl.arange(0, PADDED_SIZE)[:, None], tl.arange(0, PADDED_BLOCKS)[None, :]
    at, inside = tl.program_id(0) * (SIZE * BLOCKS) + i * BLOCKS + n, (i < SIZE) & (n < BLOCKS)
    divided, _ = normalise(tl.load(u + at, inside, 0.0), KIND, FINAL, SIZE * BLOCKS, SIZE)
    tl.store(y + at, divided, inside)


@triton.jit
def divide_back_kernel(
    g, u, g_u, SIZE: tl.constexpr, BLOCKS: tl.constexpr, PADDED_SIZE: tl.constexpr, PADDED_BLOCKS: tl.constexpr,
    KIND: tl.constexpr, FINAL: tl.constexpr,
):  # fmt: skip
    """Go back through the division of one state."""
    i, n = tl.arange(0, PADDED_SIZE)[:, None], tl.arange(0, PADDED_BLOCKS)[None, :]
    at, inside = tl.program_id(0) * (SIZE * BLOCKS) + i * BLOCKS + n, (i < SIZE) & (n < BLOCKS)
    divided, size = normalise(tl.load(u + at, inside, 0.0), KIND, FINAL, SIZE * BLOCKS, SIZE)
    before = normalise_back(tl.load(g + at, inside, 0.0), divided, size, KIND, FINAL, SIZE * BLOCKS)
    tl.store(g_u + at, before, inside)
