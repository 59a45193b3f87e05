"""Compiled matrix products by tiles that stay in registers.

Products of these models are too small for a library, whose call takes as long as the work. Here one call serves all
trials of a pack, and other kernels call it without leaving machine code. Every entry is one chain of fused
multiply-adds in the order of the sum, so its bits depend neither on the number of rows nor on the tile that it is in.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from orch.models.compiled.jit import inlined, jit

LANES = 16
"""Numbers of a vector: those of AVX-512. The compiler splits vectors where registers are shorter."""
COLUMNS, ROWS = 2 * LANES, 8
"""The largest tile: its vectors, those of the right-hand side and one of the left-hand side fit in 32 registers."""
DEPTH = 256
"""Terms that are added at once: so many rows of a panel stay in the smallest cache."""
PANEL = (DEPTH + ROWS) * COLUMNS
"""Numbers of the memory that `add_product` needs: a panel of the right-hand side, and a tile at the edge."""
_BYTES = 4
_tools: Any = cgutils  # numba leaves them without types


def _tile(num_rows: int, num_vectors: int) -> Any:
    """Return a function that adds to `num_rows` rows of `out`, as wide as so many vectors, a product with `num_terms`.

    The term k of a row is x[first + row * row_step + k * term_step] times the vectors that begin at b[b_first + k *
    b_step], whatever the axes of the arrays. The first of `out` begins at `to`, and each other `out_step` later.
    """

    @intrinsic
    def tile(_context, x, first, row_step, term_step, num_terms, b, b_first, b_step, out, to, out_step):
        signature = types.void(x, first, row_step, term_step, num_terms, b, b_first, b_step, out, to, out_step)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def pointer(place: int) -> Any:
                return context.make_array(signature.args[place])(context, builder, arguments[place]).data

            _, first, row_step, term_step, num_terms, _, b_first, b_step, _, to, out_step = arguments
            x, b, out = pointer(0), pointer(5), pointer(8)
            vector = ir.VectorType(ir.FloatType(), LANES)
            undefined, zero = ir.Constant(vector, ir.Undefined), ir.IntType(32)(0)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            fma_type = ir.FunctionType(vector, [vector] * 3)
            fma = _tools.get_or_insert_function(builder.module, fma_type, f"llvm.fma.v{LANES}f32")

            def at(base: Any, index: Any, part: int) -> Any:
                place = builder.gep(base, [builder.add(index, index.type(LANES * part))])
                return builder.bitcast(place, vector.as_pointer())

            parts = [(row, part) for row in range(num_rows) for part in range(num_vectors)]
            places = [at(out, builder.add(to, builder.mul(out_step, to.type(row))), part) for row, part in parts]
            totals = [_tools.alloca_once(builder, vector) for _ in parts]
            for place, total in zip(places, totals, strict=True):
                builder.store(builder.load(place, align=_BYTES), total)
            with _tools.for_range(builder, num_terms) as loop:
                right = builder.add(b_first, builder.mul(loop.index, b_step))
                rights = [builder.load(at(b, right, part), align=_BYTES) for part in range(num_vectors)]
                left = builder.add(first, builder.mul(loop.index, term_step))
                for (row, part), total in zip(parts, totals, strict=True):
                    number = builder.load(builder.gep(x, [builder.add(left, builder.mul(row_step, to.type(row)))]))
                    spread = builder.shuffle_vector(
                        builder.insert_element(undefined, number, zero), undefined, everywhere
                    )
                    builder.store(builder.call(fma, [spread, rights[part], builder.load(total)]), total)
            for place, total in zip(places, totals, strict=True):
                builder.store(builder.load(total), place, align=_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return tile


_eight_by_two, _eight_by_one = _tile(ROWS, 2), _tile(ROWS, 1)
_one_by_two, _one_by_one = _tile(1, 2), _tile(1, 1)


@inlined
def add_row(x, first, term_step, b, b_first, b_step, out, to, num_terms, num_columns):
    """Add a product to one row of `out`, as `add_small_product` does, without a call."""
    for j in range(0, num_columns, COLUMNS):
        if num_columns - j >= COLUMNS:
            _one_by_two(x, first, 0, term_step, num_terms, b, b_first + j, b_step, out, to + j, 0)
        else:
            _one_by_one(x, first, 0, term_step, num_terms, b, b_first + j, b_step, out, to + j, 0)


@jit
def add_small_product(
    x, first, row_step, term_step, b, b_first, b_step, out, to, out_step, num_rows, num_terms, num_columns
):  # fmt: skip
    """Add a product to rows of `out`, for a number of columns that is a multiple of LANES. Steps are as for a tile."""
    for j in range(0, num_columns, COLUMNS):
        right, wide = b_first + j, num_columns - j >= COLUMNS
        for i in range(0, num_rows // ROWS * ROWS, ROWS):
            left, place = first + i * row_step, to + i * out_step + j
            if wide:
                _eight_by_two(x, left, row_step, term_step, num_terms, b, right, b_step, out, place, out_step)
            else:
                _eight_by_one(x, left, row_step, term_step, num_terms, b, right, b_step, out, place, out_step)
        for i in range(num_rows // ROWS * ROWS, num_rows):
            left, place = first + i * row_step, to + i * out_step + j
            if wide:
                _one_by_two(x, left, row_step, term_step, num_terms, b, right, b_step, out, place, out_step)
            else:
                _one_by_one(x, left, row_step, term_step, num_terms, b, right, b_step, out, place, out_step)


@inlined
def _at_edge(x, first, row_step, term_step, out, to, out_step, num_rows, num_terms, num_columns, panel):
    """Add to rows of a tile that is not full: `out` has no numbers beyond its last column, so a copy is added to."""
    edge = DEPTH * COLUMNS
    for row in range(num_rows):
        for j in range(num_columns):
            panel[edge + row * COLUMNS + j] = out[to + row, out_step + j]
    add_small_product(
        x, first, row_step, term_step, panel, 0, COLUMNS, panel, edge, COLUMNS, num_rows, num_terms, COLUMNS
    )
    for row in range(num_rows):
        for j in range(num_columns):
            out[to + row, out_step + j] = panel[edge + row * COLUMNS + j]


@jit
def add_product(x, b, out, panel):
    """Add x times b to `out`. x and b may be transposed views; `panel` is memory of PANEL numbers."""
    (num_rows, num_terms), num_columns = x.shape, b.shape[1]
    row_step, term_step, out_step = x.strides[0] // _BYTES, x.strides[1] // _BYTES, out.strides[0] // _BYTES
    for start in range(0, num_terms, DEPTH):
        depth = min(DEPTH, num_terms - start)
        for j in range(0, num_columns, COLUMNS):
            width = min(COLUMNS, num_columns - j)
            for k in range(depth):
                for c in range(width):
                    panel[k * COLUMNS + c] = b[start + k, j + c]
                for c in range(width, COLUMNS):
                    panel[k * COLUMNS + c] = 0
            left = start * term_step
            if width == COLUMNS:
                add_small_product(
                    *(x, left, row_step, term_step, panel, 0, COLUMNS, out, j, out_step, num_rows, depth, COLUMNS)
                )
            else:
                for i in range(0, num_rows, ROWS):
                    _at_edge(
                        *(x, left + i * row_step, row_step, term_step, out, i, j, min(ROWS, num_rows - i), depth),
                        *(width, panel),
                    )
