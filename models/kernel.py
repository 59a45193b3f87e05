"""The kernel of a trial: which implementation of its model's arithmetic runs. No torch.

Kernels compute the same mathematics and differ in rounding. So a kernel is recorded with a result, like the device, and
is not part of a trial's identity. A trial keeps its kernel when it is resumed.
"""

import functools
import importlib.util
import os
import shutil

from orch.core.errors import InvalidSettings

PLAIN = "plain"
"""Operations of PyTorch, one after the other: the implementation to read, which runs everywhere."""
COMPILED = "compiled"
"""Machine code for CPUs, made by numba: see `orch.models.compiled`."""
TRITON = "triton"
"""Kernels for GPUs, made by Triton: see `orch.models.gpu_kernels`."""

COMPILED_2 = "compiled-2"
"""Later machine code of a model that rounds differently. Trials that began with `compiled` go on with that."""

VARIABLE = "ORCH_KERNEL"
"""Environment variable that chooses the kernel of new trials: `plain`, or `compiled` on a CPU, or `triton` on a GPU."""


def is_compiled(kernel: str) -> bool:
    """Return whether a kernel is machine code, of any version, for which numba is needed."""
    return kernel in (COMPILED, COMPILED_2)


def choose_kernel(device: str, prefers_compiled: bool = True, has_triton: bool = False) -> str:
    """Return the kernel for new trials on `device` of a model that has several: what the user wants, or it prefers.

    `has_triton` says whether the model has kernels for GPUs. A wish for another kind of device counts as none.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted not in (None, "", PLAIN, COMPILED, TRITON):
        raise InvalidSettings([f"{VARIABLE} is {wanted!r}: use {PLAIN}, {COMPILED} or {TRITON}, or leave it out"])
    if not device.startswith("cpu"):
        return _choose_on_a_gpu(device, wanted) if has_triton else PLAIN
    if wanted == TRITON:
        wanted = None
    if not (wanted == COMPILED if wanted else prefers_compiled):
        return PLAIN
    if compiler_found():
        return COMPILED
    if wanted == COMPILED:
        raise InvalidSettings(
            [f"{VARIABLE} is {COMPILED}, but numba cannot be imported: install it, or leave that out"]
        )
    return PLAIN


def _choose_on_a_gpu(device: str, wanted: str | None) -> str:
    if wanted == PLAIN or not device.startswith("cuda"):
        return PLAIN
    if triton_found():
        return TRITON
    if wanted == TRITON:
        raise InvalidSettings(
            [f"{VARIABLE} is {TRITON}, but triton or a C compiler is not installed: install both, or leave that out"]
        )
    return PLAIN


def triton_found() -> bool:
    """Return whether triton is installed, with the C compiler that it needs to launch a kernel.

    It is not imported. If it is broken, training on a GPU fails and says so.
    """
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    return compiler is not None and importlib.util.find_spec("triton") is not None


@functools.cache
def compiler_found() -> bool:
    """Return whether numba can be imported. A broken installation counts as none: everything runs without it."""
    try:
        import numba  # noqa: F401
    except Exception:
        return False
    return True
