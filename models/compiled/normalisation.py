"""Compiled division of a state by its size, and the gradient of that division. Its twin is `recurrence/normalisation.py`.

Kinds are numbers here. A state is a matrix of components by blocks, or of blocks by components if `across` is true.
"""

import math

import numpy as np

from orch.models.compiled.jit import jit

NONE, UNIT, RMS, BLOCK = range(4)
KINDS = {"none": NONE, "unit": UNIT, "rms": RMS, "block": BLOCK}
_TINY = np.float32(1e-30)


def num_divisors(kind: int, num_blocks: int) -> int:
    """Return how many numbers a state is divided by."""
    return num_blocks if kind == BLOCK else 1


@jit
def normalise(u, y, kind, divisors, across):
    """Write the normalised state `u` to `y`, and what it was divided by to `divisors`."""
    if kind == NONE:
        for i in range(len(u)):
            row, to = u[i], y[i]
            for m in range(len(row)):
                to[m] = row[m]
    elif kind == BLOCK and across:
        for i in range(len(u)):
            divisors[i] = _divide(u[i], y[i], _sum_of_squares(u[i]))
    elif kind == BLOCK:
        for m in range(len(divisors)):
            divisors[m] = 0
        for i in range(len(u)):
            row = u[i]
            for m in range(len(row)):
                divisors[m] += row[m] * row[m]
        for m in range(len(divisors)):
            divisors[m] = _positive(math.sqrt(divisors[m]))
        for i in range(len(u)):
            row, to = u[i], y[i]
            for m in range(len(row)):
                to[m] = row[m] / divisors[m]
    else:
        flat, flat_y = u.reshape(-1), y.reshape(-1)
        square = _sum_of_squares(flat)
        divisors[0] = _divide(flat, flat_y, square / len(flat) if kind == RMS else square)


@jit
def normalise_back(g, y, kind, divisors, across, along, out):
    """Write the gradient at u to `out`, given the gradient at y = u / divisors. `along` is memory like `divisors`."""
    if kind == NONE:
        for i in range(len(g)):
            row, to = g[i], out[i]
            for m in range(len(row)):
                to[m] = row[m]
    elif kind == BLOCK and across:
        for i in range(len(g)):
            _remove_along(g[i], y[i], 1.0, divisors[i], out[i])
    elif kind == BLOCK:
        for m in range(len(along)):
            along[m] = 0
        for i in range(len(g)):
            row, state = g[i], y[i]
            for m in range(len(row)):
                along[m] += row[m] * state[m]
        for i in range(len(g)):
            row, state, to = g[i], y[i], out[i]
            for m in range(len(row)):
                to[m] = (row[m] - state[m] * along[m]) / divisors[m]
    else:
        flat = g.reshape(-1)
        _remove_along(flat, y.reshape(-1), 1.0 / len(flat) if kind == RMS else 1.0, divisors[0], out.reshape(-1))


@jit
def _positive(size):
    # Written so that NaN stays NaN.
    return _TINY if size < _TINY else size


@jit
def _sum_of_squares(u):
    total = u[0] * u[0]
    for m in range(1, len(u)):
        total += u[m] * u[m]
    return total


@jit
def _divide(u, y, square):
    divisor = _positive(math.sqrt(square))
    factor = u.dtype.type(1 / divisor)
    for m in range(len(u)):
        y[m] = u[m] * factor
    return divisor


@jit
def _remove_along(g, y, share, divisor, out):
    along = g[0] * y[0]
    for m in range(1, len(g)):
        along += g[m] * y[m]
    part, factor = g.dtype.type(along * share), g.dtype.type(1 / divisor)
    for m in range(len(g)):
        out[m] = (g[m] - y[m] * part) * factor
