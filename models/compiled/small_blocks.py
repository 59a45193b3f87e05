"""Compiled transitions of small blocks. The blocks of a state lie next to each other, so one instruction serves many.

Shapes: a table row `a` is (b, b, n), a state is (b, n). The usual sizes of blocks have loops of fixed length, which the
compiler unrolls.
"""

from orch.models.compiled.jit import inlined, jit


@inlined
def apply_small(a, h, u):
    """Write A h to `u`."""
    b = len(h)
    for i in range(b):
        a_i, u_i = a[i], u[i]
        if b == 1:
            a_ij, h_j = a_i[0], h[0]
            for m in range(len(u_i)):
                u_i[m] = a_ij[m] * h_j[m]
        elif b == 2:
            for m in range(len(u_i)):
                u_i[m] = a_i[0, m] * h[0, m] + a_i[1, m] * h[1, m]
        elif b == 4:
            for m in range(len(u_i)):
                total = a_i[0, m] * 0
                for j in range(4):
                    total += a_i[j, m] * h[j, m]
                u_i[m] = total
        elif b == 8:
            for m in range(len(u_i)):
                total = a_i[0, m] * 0
                for j in range(8):
                    total += a_i[j, m] * h[j, m]
                u_i[m] = total
        else:
            for m in range(len(u_i)):
                u_i[m] = 0
            for j in range(b):
                a_ij, h_j = a_i[j], h[j]
                for m in range(len(u_i)):
                    u_i[m] += a_ij[m] * h_j[m]


@inlined
def apply_small_back(a, g, before):
    """Write A^T g to `before`."""
    b = len(g)
    for j in range(b):
        before_j = before[j]
        if b == 1:
            a_ij, g_i = a[0, 0], g[0]
            for m in range(len(before_j)):
                before_j[m] = a_ij[m] * g_i[m]
        elif b == 2:
            for m in range(len(before_j)):
                before_j[m] = a[0, j, m] * g[0, m] + a[1, j, m] * g[1, m]
        elif b == 4:
            for m in range(len(before_j)):
                total = g[0, m] * 0
                for i in range(4):
                    total += a[i, j, m] * g[i, m]
                before_j[m] = total
        elif b == 8:
            for m in range(len(before_j)):
                total = g[0, m] * 0
                for i in range(8):
                    total += a[i, j, m] * g[i, m]
                before_j[m] = total
        else:
            for m in range(len(before_j)):
                before_j[m] = 0
            for i in range(b):
                a_ij, g_i = a[i, j], g[i]
                for m in range(len(before_j)):
                    before_j[m] += a_ij[m] * g_i[m]


@jit
def add_small_products(g_0, g_1, g_2, g_3, h_0, h_1, h_2, h_3, g_a):
    """Add the outer products of gradients and states at four positions to the gradient of a table row."""
    b = len(h_0)
    for i in range(b):
        for j in range(b):
            to = g_a[i, j]
            for m in range(len(to)):
                to[m] += g_0[i, m] * h_0[j, m] + g_1[i, m] * h_1[j, m] + g_2[i, m] * h_2[j, m] + g_3[i, m] * h_3[j, m]
