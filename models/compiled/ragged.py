"""A batch of one trial, from its longest sequence to its shortest, without padding.

The samples that are still read at position t are the first ones. Arrays over all positions of a batch have one row per
sample and position, position after position; P is their number.
"""

import numpy as np

from orch.models.compiled.jit import jit


class Ragged:
    """The rows of a batch: those of position t are `rows(t)`."""

    def __init__(self, tokens_BT: np.ndarray, num_readable: int):
        length_B = (tokens_BT < num_readable).sum(1)
        self.order = np.argsort(-length_B, kind="stable")
        self.num_positions = int(length_B.max())
        self.counts = (length_B[None] > np.arange(self.num_positions + 1)[:, None]).sum(1).tolist()
        """Number of samples at each position, and the zero after the last."""
        self.starts = [0, *np.cumsum(self.counts).tolist()]
        self.num_rows = self.starts[-1]
        self.tokens = np.empty(self.num_rows, np.int64)
        for t in range(self.num_positions):
            self.tokens[self.rows(t)] = tokens_BT[self.order[: self.counts[t]], t]

    def rows(self, t: int) -> slice:
        return slice(self.starts[t], self.starts[t] + self.counts[t])


@jit
def sum_rows(tokens, rows, total):
    """Add each row to the one of its token."""
    for p in range(len(rows)):
        row, to = rows[p], total[tokens[p]]
        for m in range(len(row)):
            to[m] += row[m]
