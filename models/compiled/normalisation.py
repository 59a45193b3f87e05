"""Compiled division of a state by its size, and the gradient of that division. Twin: `recurrence/normalisation.py`.

Kinds are numbers here. A state is a matrix of `num_rows` rows, one after the other: of components by blocks, or of
blocks by components if `across` is true.

A state that is divided only once, at the end, may have become so small that its size is rounded to zero. It is then
divided by a constant, as by the twin, and the gradient is that of a division by a constant.
"""

import math

import numpy as np

from orch.models.compiled.jit import inlined, jit
from orch.models.recurrence.normalisation import Normalisation

NONE, UNIT, RMS, BLOCK, RMS_FINAL = range(5)
"""The last differs from `RMS` only for a size that is rounded to zero: see `Normalisation.__call__`."""
_KINDS = {"none": NONE, "unit": UNIT, "rms": RMS, "block": BLOCK}
_TINY = np.float32(1e-30)


def kinds_of(normalisation: Normalisation, every_step: bool) -> tuple[int, int]:
    """Return the kind of every step but a sample's last one, and that of the last."""
    kind = _KINDS[normalisation.kind]
    if every_step:
        return kind, kind
    return NONE, RMS_FINAL if kind == RMS else kind


def num_divisors(kind: int, num_blocks: int) -> int:
    """Return how many numbers a state is divided by."""
    return num_blocks if kind == BLOCK else 1


@jit
def normalise(u, y, kind, divisors, across, num_rows):
    """Write the normalised state `u` to `y`, and what it was divided by to `divisors`."""
    length = len(u) // num_rows
    if kind == NONE:
        for m in range(len(u)):
            y[m] = u[m]
    elif kind == RMS:
        size = math.sqrt(_sum_of_squares(u) / len(u)) if len(u) > 1 else abs(u[0])
        divisors[0] = _divide(u, y, _positive(size))
    elif kind == RMS_FINAL:
        divisors[0] = _divide(u, y, _positive(_size(u)) / math.sqrt(len(u)))
    elif kind == UNIT:
        divisors[0] = _divide(u, y, _positive(_size(u)))
    elif across:
        for i in range(num_rows):
            row = u[i * length : (i + 1) * length]
            divisors[i] = _divide(row, y[i * length : (i + 1) * length], _positive(_size(row)))
    elif num_rows == 1:
        for m in range(length):
            divisors[m] = _positive(abs(u[m]))
            y[m] = u[m] / divisors[m]
    else:
        for m in range(length):
            divisors[m] = 0
        for i in range(num_rows):
            row = u[i * length : (i + 1) * length]
            for m in range(length):
                divisors[m] += row[m] * row[m]
        for m in range(length):
            divisors[m] = _positive(math.sqrt(divisors[m]))
        for i in range(num_rows):
            row, to = u[i * length : (i + 1) * length], y[i * length : (i + 1) * length]
            for m in range(length):
                to[m] = row[m] / divisors[m]


@jit
def normalise_back(g, y, kind, divisors, across, num_rows, along, out):
    """Write the gradient at u to `out`, given the gradient at y = u / divisors. `along` is memory like `divisors`."""
    length = len(g) // num_rows
    if kind == NONE:
        for m in range(len(g)):
            out[m] = g[m]
    elif kind in (RMS, RMS_FINAL):
        _remove_along(g, y, 1.0 / len(g), divisors[0], out)
    elif kind == UNIT:
        _remove_along(g, y, 1.0, divisors[0], out)
    elif across:
        for i in range(num_rows):
            start, stop = i * length, (i + 1) * length
            _remove_along(g[start:stop], y[start:stop], 1.0, divisors[i], out[start:stop])
    else:
        for m in range(length):
            along[m] = 0
        for i in range(num_rows):
            row, state = g[i * length : (i + 1) * length], y[i * length : (i + 1) * length]
            for m in range(length):
                along[m] += row[m] * state[m]
        for m in range(length):
            along[m] = 0 if divisors[m] <= _TINY else along[m]
        for i in range(num_rows):
            start, stop = i * length, (i + 1) * length
            row, state, to = g[start:stop], y[start:stop], out[start:stop]
            for m in range(length):
                to[m] = (row[m] - state[m] * along[m]) / divisors[m]


@inlined
def _positive(size):
    # Written so that NaN stays NaN.
    return _TINY if size < _TINY else size


@inlined
def _size(u):
    # The square of a single small number would be rounded to zero.
    return math.sqrt(_sum_of_squares(u)) if len(u) > 1 else abs(u[0])


@inlined
def _sum_of_squares(u):
    total = u[0] * u[0]
    for m in range(1, len(u)):
        total += u[m] * u[m]
    return total


@inlined
def _divide(u, y, divisor):
    factor = u.dtype.type(1 / divisor)
    for m in range(len(u)):
        y[m] = u[m] * factor
    return divisor


@inlined
def _remove_along(g, y, share, divisor, out):
    along = g[0] * y[0]
    for m in range(1, len(g)):
        along += g[m] * y[m]
    if divisor <= _TINY:
        along = g.dtype.type(0)
    part, factor = g.dtype.type(along * share), g.dtype.type(1 / divisor)
    for m in range(len(g)):
        out[m] = (g[m] - y[m] * part) * factor
