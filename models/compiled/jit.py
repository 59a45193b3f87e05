"""Decorator that compiles a function with numba, and keeps the machine code in the user's cache folder."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import config

REORDER = {"reassoc", "contract", "nsz"}
"""Liberties that the compiler may take: sums in any order and fused multiply-adds. Infinities and NaN keep their
meaning, because a diverged trial is recognised by them."""


def cache_folder() -> Path | None:
    """Return the folder for machine code, created if need be; None if no place is writable.

    It is `$ORCH_KERNEL_CACHE`, else `orch/kernels` in the user's cache folder, else a folder for temporary files.
    Several processes may use it at once: numba writes a file aside and renames it.
    """
    chosen = os.environ.get("ORCH_KERNEL_CACHE")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    places = [Path(chosen)] if chosen else [caches / "orch", Path(tempfile.gettempdir()) / f"orch-{os.getuid()}"]
    for place in places:
        folder = place if chosen else place / "kernels"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


def source_digest(folder: Path = Path(__file__).parent) -> str:
    """Return a digest of the sources of all kernels.

    numba compiles a function anew only if its own file has changed, and would go on with outdated copies of those that
    it calls in other files. So the machine code of each version has a folder of its own.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


_FOLDER = cache_folder()
if _FOLDER is not None and not getattr(config, "CACHE_DIR", ""):
    config.CACHE_DIR = str(_FOLDER / source_digest())  # type: ignore[attr-defined]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call. Indices are not checked, and division by zero gives infinity."""
    return _compile(function)


def jit_with_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that makes arrays of its own, which the compiler then knows to be apart from all others."""
    return _compile(function, _nrt=True)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a short function into those that call it."""
    return _compile(function, forceinline=True)


def _compile(function: Callable[..., Any], **more: bool) -> Callable[..., Any]:
    # A kernel is given all its memory. So numba need not count references to it, which takes longer than a short row.
    options: dict[str, Any] = {"fastmath": REORDER, "error_model": "numpy", "nogil": True, "_nrt": False} | more
    compiled: Callable[..., Any] = numba.njit(cache=_FOLDER is not None, **options)(function)
    return compiled
