"""Checks of a worker's machine, which take minutes, for `orch doctor`.

They compare losses and gradients with double precision, packs with single trials, resumed trials with uninterrupted
ones and recorded steps with ordinary ones. Each comparison starts from equal weights, because training amplifies
rounding: Adam's first update is the sign of the gradient. Then they time training steps for `orch plan`.
"""

from orch.running.doctor.examination import examine
from orch.running.doctor.finding import CheckState, Failed, Finding, Skipped

__all__ = ["CheckState", "Failed", "Finding", "Skipped", "examine"]
