"""Compiled transitions of small blocks. The blocks of a state lie next to each other, so one instruction serves many.

Shapes: a table row `a` is (b, b, n), a state is (b, n).
"""

from orch.models.compiled.jit import jit


@jit
def apply_small(a, h, u):
    """Write A h to `u`."""
    b = len(h)
    if b == 1:
        a_0, h_0, u_0 = a[0, 0], h[0], u[0]
        for m in range(len(u_0)):
            u_0[m] = a_0[m] * h_0[m]
    elif b == 2:
        a_0, a_1, a_2, a_3, h_0, h_1, u_0, u_1 = a[0, 0], a[0, 1], a[1, 0], a[1, 1], h[0], h[1], u[0], u[1]
        for m in range(len(u_0)):
            u_0[m] = a_0[m] * h_0[m] + a_1[m] * h_1[m]
            u_1[m] = a_2[m] * h_0[m] + a_3[m] * h_1[m]
    else:
        for i in range(b):
            u_i, a_i = u[i], a[i]
            for m in range(len(u_i)):
                u_i[m] = 0
            for j in range(b):
                a_ij, h_j = a_i[j], h[j]
                for m in range(len(u_i)):
                    u_i[m] += a_ij[m] * h_j[m]


@jit
def apply_small_back(a, h, g, before, g_a):
    """Write A^T g to `before`, and add the outer products of `g` and `h` to the table's gradient."""
    b = len(h)
    if b == 1:
        a_0, h_0, g_0, before_0, g_a_0 = a[0, 0], h[0], g[0], before[0], g_a[0, 0]
        for m in range(len(h_0)):
            before_0[m] = a_0[m] * g_0[m]
            g_a_0[m] += g_0[m] * h_0[m]
    elif b == 2:
        before_0, before_1, g_0, g_1, h_0, h_1 = before[0], before[1], g[0], g[1], h[0], h[1]
        a_0, a_1, a_2, a_3 = a[0, 0], a[0, 1], a[1, 0], a[1, 1]
        for m in range(len(h_0)):
            before_0[m] = a_0[m] * g_0[m] + a_2[m] * g_1[m]
            before_1[m] = a_1[m] * g_0[m] + a_3[m] * g_1[m]
        for i in range(2):
            g_i, to_0, to_1 = g[i], g_a[i, 0], g_a[i, 1]
            for m in range(len(h_0)):
                to_0[m] += g_i[m] * h_0[m]
                to_1[m] += g_i[m] * h_1[m]
    else:
        for j in range(b):
            before_j = before[j]
            for m in range(len(before_j)):
                before_j[m] = 0
        for i in range(b):
            g_i, a_i, g_a_i = g[i], a[i], g_a[i]
            for j in range(b):
                a_ij, h_j, before_j, to = a_i[j], h[j], before[j], g_a_i[j]
                for m in range(len(g_i)):
                    before_j[m] += a_ij[m] * g_i[m]
                    to[m] += g_i[m] * h_j[m]
