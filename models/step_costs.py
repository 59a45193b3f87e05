"""Counts from which the time of a training step is estimated. No torch.

Times of devices are in `orch.planning.step_time`; here are only facts about a model's implementations, its kernels.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launches:
    """Number of kernels that a training step starts, in its parts.

    On a CPU they are calls. Those of GPUs are counted by `tests/gpu`, on tensors without data.
    """

    fixed: float
    per_position: float = 0.0
    per_token: float = 0.0
    """For each readable token of the vocabulary."""
    per_layer: float = 0.0
    for_each_trial: bool = False
    """False if a launch serves all trials of a pack. Most compiled kernels (numba) serve one trial after the other."""

    def count(self, num_positions: int, num_readable: int, num_layers: int = 0) -> float:
        """Return the number for sequences of `num_positions`.

        >>> Launches(30, per_position=13, per_token=3).count(12, 7)
        207.0
        """
        parts = self.per_position * num_positions, self.per_token * num_readable, self.per_layer * num_layers
        return float(self.fixed + sum(parts))
