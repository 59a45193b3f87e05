"""Plain values as Python text."""

import math
from types import MappingProxyType
from typing import Any

MOST_NUMBERS = 100_000
"""Largest array that is written out."""


def literal(value: Any) -> str | None:
    """Return an expression for a value, or None if it is not made of plain values. Arrays need `numpy` or `torch`.

    >>> literal({"rates": (1e-3, float("inf")), "on": True})
    "{'rates': (0.001, float('inf')), 'on': True}"
    >>> literal(object()) is None
    True
    """
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or kind in (bool, int, float, complex, str, bytes, range):
        return repr(value)
    if kind in (list, tuple, set, frozenset):
        return _collection(value)
    if kind in (dict, MappingProxyType):
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return _array(value)


def _collection(value: Any) -> str | None:
    items = [literal(item) for item in value]
    if isinstance(value, (set, frozenset)):
        items = sorted(items, key=str)
    texts = [item for item in items if item is not None]
    if len(texts) < len(items):
        return None
    inside = ", ".join(texts)
    if isinstance(value, tuple):
        return f"({inside},)" if len(texts) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{inside}]"
    return f"{type(value).__name__}([{inside}])"


def _array(value: Any) -> str | None:
    """Return an expression for a small array, tensor or number of numpy or torch, or for a type of torch's numbers."""
    library, kind = type(value).__module__.partition(".")[0], type(value).__name__
    if library == "torch" and kind == "dtype":
        return str(value)
    if library == "torch" and kind == "device":
        return f"torch.device({str(value)!r})"
    if library == "numpy" and kind != "ndarray" and hasattr(value, "item"):
        return literal(value.item())
    if (library, kind) not in (("numpy", "ndarray"), ("torch", "Tensor")):
        return None
    numbers = literal(value.tolist()) if math.prod(value.shape) <= MOST_NUMBERS else None
    if numbers is None:
        return None
    if library == "torch":
        return f"torch.tensor({numbers}, dtype={value.dtype})"
    return f"numpy.array({numbers}, dtype={str(value.dtype)!r})"
