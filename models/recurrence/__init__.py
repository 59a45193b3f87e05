"""Recurrences over token sequences, stacked over trials, with hand-written backward passes.

They are fast for three reasons. The vocabulary is tiny, so what depends on the input alone is computed once per token
and looked up. An operation serves all trials of a stack at once. Gradients are summed by matmuls.
"""

from orch.models.recurrence.blocks import block_scan
from orch.models.recurrence.elman import elman_scan
from orch.models.recurrence.factored import factored_scan
from orch.models.recurrence.lstm import lstm_scan
from orch.models.recurrence.normalisation import Normalisation

__all__ = ["Normalisation", "block_scan", "elman_scan", "factored_scan", "lstm_scan"]
