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
    **{
        f"{model} with {layers} layers": (model, {"layers": layers})
        for model in ("delta_net", "gated_delta_net", "lru", "rg_lru", "unitary_diagonal", "mlstm", "slstm")
        for layers in (1, 2)
    },
    "delta_product": ("delta_product", {}),
    "sd_ssm": ("sd_ssm", {}),
    "mi_rnn": ("mi_rnn", {}),
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
    "mamba with 1 layers": 327,
    "mamba with 2 layers": 593,
    "mamba with 4 layers": 1125,
    "transformer with 1 layers": 127,
    "transformer with 2 layers": 194,
    "transformer with 4 layers": 328,
    "delta_net with 1 layers": 288,
    "delta_net with 2 layers": 510,
    "gated_delta_net with 1 layers": 387,
    "gated_delta_net with 2 layers": 708,
    "lru with 1 layers": 437,
    "lru with 2 layers": 808,
    "rg_lru with 1 layers": 333,
    "rg_lru with 2 layers": 600,
    "unitary_diagonal with 1 layers": 214,
    "unitary_diagonal with 2 layers": 362,
    "mlstm with 1 layers": 284,
    "mlstm with 2 layers": 502,
    "slstm with 1 layers": 690,
    "slstm with 2 layers": 1314,
    "delta_product": 291,
    "sd_ssm": 211,
    "mi_rnn": 198,
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
