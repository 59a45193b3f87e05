"""Compiled transitions of large blocks. The components of a block lie next to each other.

Shapes: transitions, `rows`, and their transposes, `columns`, are (n, b, b), a state is (n, b).
"""

from orch.models.compiled.jit import inlined, jit


@inlined
def apply_large(rows, h, u):
    """Write A h to `u`."""
    for block in range(len(h)):
        _products(rows[block], h[block], u[block])


@inlined
def apply_large_back(columns, g, before):
    """Write A^T g to `before`."""
    for block in range(len(g)):
        _products(columns[block], g[block], before[block])


@jit
def add_large_products(g_0, g_1, g_2, g_3, h_0, h_1, h_2, h_3, g_rows):
    """Add the outer products of gradients and states at four positions to the gradient of a table row."""
    for block in range(len(h_0)):
        state_0, state_1, state_2, state_3 = h_0[block], h_1[block], h_2[block], h_3[block]
        for i in range(len(state_0)):
            weight_0, weight_1, weight_2, weight_3 = g_0[block, i], g_1[block, i], g_2[block, i], g_3[block, i]
            to = g_rows[block, i]
            for m in range(len(to)):
                to[m] += weight_0 * state_0[m] + weight_1 * state_1[m] + weight_2 * state_2[m] + weight_3 * state_3[m]


@inlined
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
