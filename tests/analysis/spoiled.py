"""Comparisons with the published numbers of which some are missing, failed, partial, diverged or far off."""

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from tests.analysis.invented import invented_results


def spoiled(scale):
    """Comparisons of which some are missing, failed, partial, diverged, or far off: one row of the dihedral table."""
    finished = invented_results(scale)
    validation = [
        each for each in compare(Board(scale, finished), tables=["dihedral"]) if each.published.split == "validation"
    ]
    missing, failed, partial, diverged, off = (each.trial_ids for each in validation[:5])
    for trial_id in (*missing, *failed, *partial[1:]):
        del finished[trial_id]
    finished[diverged[0]]["stop_reason"] = "diverged"
    for trial_id in off:
        finished[trial_id]["validation_accuracy"] = 0.25
    return compare(Board(scale, finished, {*failed, partial[1]}))
