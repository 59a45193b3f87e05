"""The eight models that the paper matches by parameter count (at modulus 5 of modular addition)."""

from orch.models import REGISTRY, ModelConfig

MATCHED: tuple[ModelConfig, ...] = (
    REGISTRY["bilinear"](width=80),
    REGISTRY["factored"](width=256, rank=700),  # type: ignore[call-arg]
    REGISTRY["block_diagonal"](width=128, block_size=32),  # type: ignore[call-arg]
    REGISTRY["block_diagonal"](width=256, block_size=8),  # type: ignore[call-arg]
    REGISTRY["lstm"](width=256),
    REGISTRY["rnn"](width=512),
    REGISTRY["mamba"](width=128, layers=4),  # type: ignore[call-arg]
    REGISTRY["transformer"](width=96, layers=4, heads=4),  # type: ignore[call-arg]
)
