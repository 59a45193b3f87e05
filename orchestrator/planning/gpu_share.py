"""The number of packs that share a GPU, from the memory that they take: `--gpus-per-trial auto`. No torch."""

from collections.abc import Iterable, Sequence

from orch.planning.pack_size import memory
from orch.sweeps.trial import Trial

CONTEXT = 0.8e9
"""Bytes of a GPU that each process takes for itself: CUDA's context, libraries and recorded steps."""
USABLE = 0.9
"""The share of a GPU's memory to plan with: the sizes of packs are estimates, and memory is split up by use."""
MOST_SHARING = 4
"""Most packs on one GPU: each is large enough to keep a GPU busy for much of the time."""


def num_sharing(packs: Iterable[Sequence[Trial]], gpu_memory: float) -> int:
    """Return how many packs can be on a GPU with so many bytes at once, whichever of these packs they are."""
    largest = max((memory(pack[0], len(pack), "gpu") for pack in packs if pack), default=0.0)
    return max(1, min(MOST_SHARING, int(USABLE * gpu_memory / (largest + CONTEXT))))
