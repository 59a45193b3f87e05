"""Compiled sigmoid and power of two. The mathematical library would compute one number at a time."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from orch.models.compiled.jit import inlined

_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
_C2, _C3, _C4 = np.float32(5.0000001201e-1), np.float32(1.6666665459e-1), np.float32(4.1665795894e-2)
_C5, _C6, _C7 = np.float32(8.3334519073e-3), np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)
_LARGEST, _ONE, _HALF = np.float32(87), np.float32(1), np.float32(0.5)

_LOWEST = np.float32(-126)
"""Smaller powers of two are not normal numbers."""
_P1, _P2, _P3 = np.float32(6.9314720e-1), np.float32(2.4022648e-1), np.float32(5.5503324e-2)
_P4, _P5, _P6 = np.float32(9.6184373e-3), np.float32(1.3398874e-3), np.float32(1.5353362e-4)


@intrinsic
def _float_of_bits(_context: Any, bits: Any) -> Any:
    """Return the number whose binary form is this integer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@inlined
def sigmoid(x):
    """Return 1 / (1 + exp(-x)) to about 1e-7. NaN stays NaN.

    exp(y) is 2^k exp(f), with k an integer and f within half of log 2. Its polynomial is that of Cephes' expf.
    """
    y = _LARGEST if -x > _LARGEST else (-_LARGEST if -x < -_LARGEST else -x)
    k = np.floor(y * _LOG2_E + _HALF)
    f = y - k * _LN2_HIGH - k * _LN2_LOW
    polynomial = ((((_C7 * f + _C6) * f + _C5) * f + _C4) * f + _C3) * f + _C2
    power = _float_of_bits((np.int32(k) + np.int32(127)) << np.int32(23))
    return _ONE / (_ONE + (polynomial * f * f + f + _ONE) * power)


@inlined
def exp2(x):
    """Return 2 to the power of x to about 1e-7, for x up to 127. NaN stays NaN."""
    bounded = _LOWEST if x < _LOWEST else x
    k = np.floor(bounded + _HALF)
    f = bounded - k
    polynomial = ((((_P6 * f + _P5) * f + _P4) * f + _P3) * f + _P2) * f + _P1
    return (polynomial * f + _ONE) * _float_of_bits((np.int32(k) + np.int32(127)) << np.int32(23))
