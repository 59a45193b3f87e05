"""Compiled transitions of large blocks. The components of a block lie next to each other.

Shapes: transitions, `rows`, and their transposes, `columns`, are (n, b, b), a state is (n, b).
"""

from orch.models.compiled.jit import jit


@jit
def apply_large(rows, h, u):
    """Write A h to `u`."""
    for block in range(len(h)):
        _products(rows[block], h[block], u[block])


@jit
def apply_large_back(columns, h, g, before, g_rows):
    """Write A^T g to `before`, and add the outer products of `g` and `h` to the table's gradient."""
    for block in range(len(h)):
        g_block, h_block, to_block = g[block], h[block], g_rows[block]
        _products(columns[block], g_block, before[block])
        for i in range(len(g_block)):
            weight, to = g_block[i], to_block[i]
            for m in range(len(to)):
                to[m] += weight * h_block[m]


@jit
def _products(lines, x, out):
    """Write the product of each line with `x` to `out`, four lines at a time."""
    by_four = len(lines) // 4 * 4
    for i in range(0, by_four, 4):
        line_0, line_1, line_2, line_3 = lines[i], lines[i + 1], lines[i + 2], lines[i + 3]
        sum_0 = sum_1 = sum_2 = sum_3 = x[0] * 0
        for m in range(len(x)):
            sum_0 += line_0[m] * x[m]
            sum_1 += line_1[m] * x[m]
            sum_2 += line_2[m] * x[m]
            sum_3 += line_3[m] * x[m]
        out[i], out[i + 1], out[i + 2], out[i + 3] = sum_0, sum_1, sum_2, sum_3
    for i in range(by_four, len(lines)):
        line, total = lines[i], x[0] * 0
        for m in range(len(x)):
            total += line[m] * x[m]
        out[i] = total
