"""The positions of a batch in the order of their tokens, found on the device in one launch and without waiting."""

from typing import NamedTuple, cast

import triton
import triton.language as tl
from torch import Tensor
from torch import int32 as INT32

from orch.models.gpu_kernels.operation import operation

_SAMPLES_AT_ONCE = 1024


class TokenGroups(NamedTuple):
    """Which samples read which token, and where."""

    order_KP: Tensor
    """Positions, as t * B + sample, in the order of token, time and sample. What follows the last one is undefined."""
    start_KRT: Tensor
    """Place in that order of the first sample that reads a token at a time, (K, R, T + 1); the last is their end."""


def group_by_token(tokens_KBT: Tensor, num_readable: int) -> TokenGroups:
    """Group the positions of a batch by token. Padding is in no group."""
    return TokenGroups(*cast(tuple[Tensor, Tensor], token_groups(tokens_KBT, num_readable)))


def _results(tokens_KBT: Tensor, num_readable: int) -> tuple[Tensor, Tensor]:
    K, B, T = tokens_KBT.shape
    shapes = (K, T * B), (K, num_readable, T + 1)
    return tokens_KBT.new_empty(shapes[0], dtype=INT32), tokens_KBT.new_empty(shapes[1], dtype=INT32)


@operation(fake=_results)
def token_groups(tokens_KBT: Tensor, num_readable: int) -> tuple[Tensor, Tensor]:
    """Return the order and the starts."""
    order_KP, start_KRT = _results(tokens_KBT, num_readable)
    K, B, T = tokens_KBT.shape
    groups_kernel[(num_readable, K)](
        *(tokens_KBT, order_KP, start_KRT, T, B, *tokens_KBT.stride()), **groups_options(B)
    )
    return order_KP, start_KRT


def groups_options(num_samples: int) -> dict[str, int]:
    """Return the sizes of the tiles."""
    return {"SAMPLES": min(_SAMPLES_AT_ONCE, triton.next_power_of_2(num_samples)), "num_warps": 4}


@triton.jit
def groups_kernel(tokens, order, start, T, B, stride_k, stride_b, stride_t, SAMPLES: tl.constexpr):
    """Find the positions of one token of one trial."""
    r, k, R = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    place = tl.zeros((), tl.int32)
    for t in range(T):
        for first in range(0, B, SAMPLES):
            s = first + tl.arange(0, SAMPLES)
            token = tl.load(tokens + k * stride_k + s * stride_b + t * stride_t, s < B, R)
            place += tl.sum((token < r).to(tl.int32), 0)
    for t in range(T):
        tl.store(start + (k * R + r) * (T + 1) + t, place)
        for first in range(0, B, SAMPLES):
            s = first + tl.arange(0, SAMPLES)
            token = tl.load(tokens + k * stride_k + s * stride_b + t * stride_t, s < B, R)
            reads = (token == r).to(tl.int32)
            rank = tl.cumsum(reads, 0) - 1
            tl.store(order + k * (T * B) + place + rank, t * B + s, reads > 0)
            place += tl.sum(reads, 0)
    tl.store(start + (k * R + r) * (T + 1) + T, place)
