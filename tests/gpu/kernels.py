"""Kernels that a training step starts at width 256 on modular addition (modulus 5), one trial: ceilings for tests.

Counted by `simulation.py` on fake tensors: operations that compute something, each as one kernel. Where a step is
recorded as a CUDA graph, one launch starts all of them.
"""

from typing import Any

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bilinear": ("bilinear", {}),
    **{f"blocks of {size}": ("block_diagonal", {"block_size": size}) for size in (1, 2, 8, 64)},
    "rotation": ("rotation", {}),
    "factored": ("factored", {}),
    "rnn": ("rnn", {}),
    "lstm": ("lstm", {}),
    **{f"mamba with {layers} layers": ("mamba", {"layers": layers}) for layers in (1, 2, 4)},
    **{f"transformer with {layers} layers": ("transformer", {"layers": layers}) for layers in (1, 2, 4)},
}
KERNELS = {
    "bilinear": 207,
    "blocks of 1": 175,
    "blocks of 2": 206,
    "blocks of 8": 213,
    "blocks of 64": 213,
    "rotation": 219,
    "factored": 392,
    "rnn": 197,
    "lstm": 382,
    "mamba with 1 layers": 326,
    "mamba with 2 layers": 592,
    "mamba with 4 layers": 1124,
    "transformer with 1 layers": 127,
    "transformer with 2 layers": 194,
    "transformer with 4 layers": 328,
}
"""With plain kernels."""
TRITON_KERNELS = {
    "bilinear": 49,
    "blocks of 1": 25,
    "blocks of 2": 25,
    "blocks of 8": 25,
    "blocks of 64": 49,
    "rotation": 27,
    "factored": 126,
    "rnn": 76,
    "lstm": 77,
    "mamba with 1 layers": 60,
    "mamba with 2 layers": 92,
    "mamba with 4 layers": 140,
}
"""With kernels for GPUs."""
