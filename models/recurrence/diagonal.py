"""Diagonal linear recurrences over time by doubling: h_t = a_t h_{t-1} + b_t, from h = 0.

After the step of size s, h_t is the sum over the last 2s positions, and a_t the product of their factors. So log T
steps over all positions take the place of T steps over one. The second axis is time. Complex numbers are pairs of real
ones, whose products are rounded alike wherever in memory they stand.
"""

import torch
from torch import Tensor

Complex = tuple[Tensor, Tensor]


def diagonal_scan(a_KTBI: Tensor, b_KTBI: Tensor) -> Tensor:
    """Return h at every position, for factors that differ from position to position."""
    a, h, step = a_KTBI, b_KTBI, 1
    while step < h.shape[1]:
        h = torch.cat([h[:, :step], h[:, step:] + a[:, step:] * h[:, :-step]], dim=1)
        a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], dim=1)
        step *= 2
    return h


def constant_scan(a_K11I: Complex, b_KTBI: Complex) -> Complex:
    """Return h at every position, complex, for a factor that is the same at all of them."""
    a, (real, imaginary), step = a_K11I, b_KTBI, 1
    while step < real.shape[1]:
        more_real, more_imaginary = multiply(a, (real[:, :-step], imaginary[:, :-step]))
        real = torch.cat([real[:, :step], real[:, step:] + more_real], dim=1)
        imaginary = torch.cat([imaginary[:, :step], imaginary[:, step:] + more_imaginary], dim=1)
        a = multiply(a, a)
        step *= 2
    return real, imaginary


def multiply(x: Complex, y: Complex) -> Complex:
    """Return the product of complex numbers."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]
