"""Division of a state by its size within a kernel, and the gradient of that division.

Twin: `recurrence/normalisation.py`. A state is a tile of components by blocks, with zeros where the tile is larger.
`KIND` is unit, rms or block. `FINAL` is true for a state that is divided once, after the last position: it may
have become so small that its size is rounded to zero. It is then divided by a constant, whose slope is zero.
"""

import triton
import triton.language as tl

from orch.models.recurrence.normalisation import TINY

_TINY = tl.constexpr(TINY)


@triton.jit
def normalise(u, KIND: tl.constexpr, FINAL: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """Return a state divided by its size, and that size: a tile of one row, or of one entry."""
    if KIND == "block":
        # The square of a single small number would be rounded to zero.
        squares = tl.sum(u * u, 0, keep_dims=True)
        size = tl.sqrt(squares) if SIZE > 1 else tl.sum(tl.abs(u), 0, keep_dims=True)
    elif WIDTH == 1:
        size = tl.sum(tl.sum(tl.abs(u), 1, keep_dims=True), 0, keep_dims=True)
    else:
        size = tl.sqrt(tl.sum(tl.sum(u * u, 1, keep_dims=True), 0, keep_dims=True))
    if KIND == "rms" and not FINAL:
        size = size / tl.sqrt(tl.full((1, 1), WIDTH, tl.float32))
    size = tl.where(size < _TINY, _TINY, size)  # written so that NaN stays NaN
    if KIND == "rms" and FINAL:
        size = size / tl.sqrt(tl.full((1, 1), WIDTH, tl.float32))
    return u / size, size


@triton.jit
def normalise_back(g, y, size, KIND: tl.constexpr, FINAL: tl.constexpr, WIDTH: tl.constexpr):
    """Return the gradient before the division, given that at its result `y`. Its part along `y` is removed."""
    if KIND == "block":
        along = tl.sum(g * y, 0, keep_dims=True)
    else:
        along = tl.sum(tl.sum(g * y, 1, keep_dims=True), 0, keep_dims=True)
    if KIND == "rms":
        along = along / WIDTH
    if FINAL:
        along = tl.where(size <= _TINY, 0.0, along)
    return (g - y * along) / size
