"""How many published numbers a plan covers."""

from collections.abc import Collection

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.published import TABLES, published_cells
from orch.sweeps.scales import Scale

NUM_PUBLISHED = len(published_cells())


def num_covered(scale: Scale, sweeps: Collection[str], trial_ids: Collection[str] | None = None) -> int:
    """Count the published numbers that these sweeps plan trials for, or those whose trials are all in `trial_ids`."""
    tables = [table.name for table in TABLES.values() if table.sweep in sweeps]
    return len(
        {
            each.published
            for each in compare(Board(scale), tables)
            if trial_ids is None or all(trial_id in trial_ids for trial_id in each.trial_ids)
        }
    )
