"""The kernel of a trial: which implementation of its model's arithmetic runs. No torch.

Kernels compute the same mathematics and differ in rounding. So a kernel is recorded with a result, like the device, and
is not part of a trial's identity. A trial keeps its kernel when it is resumed.
"""

import functools
import os

from orch.core.errors import InvalidSettings

PLAIN = "plain"
"""Operations of PyTorch, one after the other: the implementation to read, which runs everywhere."""
COMPILED = "compiled"
"""Machine code for CPUs, made by numba: see `orch.models.compiled`."""

COMPILED_2 = "compiled-2"
"""Later machine code of a model that rounds differently. Trials that began with `compiled` go on with that."""

VARIABLE = "ORCH_KERNEL"
"""Environment variable that chooses the kernel of new trials: `plain` or `compiled`."""


def is_compiled(kernel: str) -> bool:
    """Return whether a kernel is machine code, of any version, for which numba is needed."""
    return kernel in (COMPILED, COMPILED_2)


def choose_kernel(device: str, prefers_compiled: bool = True) -> str:
    """Return the kernel for new trials on `device` of a model that has both: what the user wants, or it prefers."""
    wanted = os.environ.get(VARIABLE)
    if wanted not in (None, "", PLAIN, COMPILED):
        raise InvalidSettings([f"{VARIABLE} is {wanted!r}: use {PLAIN} or {COMPILED}, or leave it out"])
    if not device.startswith("cpu") or not (wanted == COMPILED if wanted else prefers_compiled):
        return PLAIN
    if compiler_found():
        return COMPILED
    if wanted == COMPILED:
        raise InvalidSettings(
            [f"{VARIABLE} is {COMPILED}, but numba cannot be imported: install it, or leave that out"]
        )
    return PLAIN


@functools.cache
def compiler_found() -> bool:
    """Return whether numba can be imported. A broken installation counts as none: everything runs without it."""
    try:
        import numba  # noqa: F401
    except Exception:
        return False
    return True
