"""The tiles of the hierarchy: which model learns which task, from the least to the most expressive model."""

from collections.abc import Iterable
from dataclasses import dataclass

from orch.analysis.aggregate import CellStatus
from orch.analysis.comparison import Comparison
from orch.sweeps.selection import LEARNED

MODULI = (2, 3, 5)
"""Small moduli are enough to see the hierarchy; the heat map shows every modulus of the scale."""

FAMILIES: dict[str, dict[str, tuple[str, str | None]]] = {
    "more expressive  →": {
        "Blocks of 1": ("block_diagonal", "1"),
        "Rotation": ("rotation", ""),
        "Blocks of 2": ("block_diagonal", "2"),
        "Blocks of 8": ("block_diagonal", "8"),
        "Blocks of 64": ("block_diagonal", "64"),
        "Factored": ("factored", ""),
        "Bilinear": ("bilinear", ""),
    },
    "others": {
        "RNN": ("rnn", ""),
        "LSTM": ("lstm", ""),
        "Mamba": ("mamba", None),
        "Transformer": ("transformer", None),
    },
}
"""Rows by family: each has a model and a variant, or None for the best of its variants."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Our accuracy and the published one for a row, a task and a modulus."""

    ours: float | None
    published: float
    conclusive: bool
    """Whether all trials are finished or one has learned the task, so that more trials would not change the tile."""


def tiles(comparisons: Iterable[Comparison]) -> dict[tuple[str, str, int], Tile]:
    """Return the tiles of one table and split by row, task and modulus. A row shows the best variant with results."""
    row_of = {model: row for rows in FAMILIES.values() for row, model in rows.items()}
    groups: dict[tuple[str, str, int], list[Comparison]] = {}
    for each in comparisons:
        key = each.published.key
        row = row_of.get((key.model, key.variant)) or row_of.get((key.model, None))
        if row is not None and key.modulus in MODULI:
            groups.setdefault((row, key.task, key.modulus), []).append(each)
    return {place: _tile(group) for place, group in groups.items()}


def _tile(group: list[Comparison]) -> Tile:
    known = [each for each in group if each.ours is not None]
    ours = max((each.ours for each in known if each.ours is not None), default=None)
    finished = all(each.summary.status is CellStatus.COMPLETE for each in group)
    learned = ours is not None and ours >= LEARNED
    return Tile(ours, max(each.published.accuracy for each in known or group), finished or learned)
