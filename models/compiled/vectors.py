"""Compiled operations on short vectors, such as those of a head, which begin anywhere in an array.

A loop of unknown length is compiled for long vectors and goes through a short one number by number. These go through
LANES numbers at a time, and one by one only where the size is no multiple of that.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from orch.models.compiled.jit import inlined
from orch.models.compiled.tile import LANES

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_BYTES = 4
_tools: Any = cgutils  # numba leaves them without types


def _for_each(
    builder: Any, bases: tuple[Any, Any], firsts: tuple[Any, Any], num_vectors: Any, act: Callable[..., None]
) -> None:
    """Call `act` with pointers to each pair of vectors."""
    with _tools.for_range(builder, num_vectors) as loop:
        offset = builder.mul(loop.index, loop.index.type(LANES))
        pointers = (builder.gep(base, [builder.add(first, offset)]) for base, first in zip(bases, firsts, strict=True))
        act(*(builder.bitcast(pointer, _VECTOR.as_pointer()) for pointer in pointers))


def _pointer(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _everywhere(builder: Any, number: Any) -> Any:
    """Return a vector of equal numbers."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


@intrinsic
def _dot(_context, x, first, y, y_first, num_vectors):
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, first, y, y_first, num_vectors = arguments
        bases = _pointer(context, builder, signature.args[0], x), _pointer(context, builder, signature.args[2], y)
        total = _tools.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))

        def act(a: Any, b: Any) -> None:
            product = builder.fmul(builder.load(a, align=_BYTES), builder.load(b, align=_BYTES), flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)

        _for_each(builder, bases, (first, y_first), num_vectors, act)
        sums, half = builder.load(total), LANES // 2
        while half:
            order = [(lane + half) % LANES for lane in range(LANES)]
            places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
            sums = builder.fadd(sums, builder.shuffle_vector(sums, sums, places))
            half //= 2
        return builder.extract_element(sums, ir.IntType(32)(0))

    return types.float32(x, first, y, y_first, num_vectors), generate


def _multiply(adds: bool) -> Any:
    @intrinsic
    def multiply(_context, x, first, factor, to, to_first, num_vectors):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, first, factor, to, to_first, num_vectors = arguments
            bases = _pointer(context, builder, signature.args[0], x), _pointer(context, builder, signature.args[3], to)
            factors = _everywhere(builder, factor)

            def act(a: Any, b: Any) -> None:
                result = builder.fmul(builder.load(a, align=_BYTES), factors, flags=("contract",))
                if adds:
                    result = builder.fadd(builder.load(b, align=_BYTES), result, flags=("contract",))
                builder.store(result, b, align=_BYTES)

            _for_each(builder, bases, (first, to_first), num_vectors, act)
            return context.get_dummy_value()

        return types.void(x, first, types.float32, to, to_first, num_vectors), generate

    return multiply


_scale, _add_scaled = _multiply(adds=False), _multiply(adds=True)


@inlined
def dot(x, row, column, y, y_row, y_column, size):
    """Return the product of two vectors, which are parts of rows of matrices."""
    whole = size // LANES
    first, y_first = row * x.shape[1] + column, y_row * y.shape[1] + y_column
    total = _dot(x, first, y, y_first, whole)
    for c in range(whole * LANES, size):
        total += x[row, column + c] * y[y_row, y_column + c]
    return total


@inlined
def scale(x, row, column, factor, to, to_row, to_column, size):
    """Write a multiple of a vector."""
    whole = size // LANES
    _scale(x, row * x.shape[1] + column, factor, to, to_row * to.shape[1] + to_column, whole)
    for c in range(whole * LANES, size):
        to[to_row, to_column + c] = factor * x[row, column + c]


@inlined
def add_scaled(x, row, column, factor, to, to_row, to_column, size):
    """Add a multiple of a vector to another."""
    whole = size // LANES
    _add_scaled(x, row * x.shape[1] + column, factor, to, to_row * to.shape[1] + to_column, whole)
    for c in range(whole * LANES, size):
        to[to_row, to_column + c] += factor * x[row, column + c]
