"""Figures of tiles beside the published numbers: the heat map, the hierarchy and the reach of factors."""

import re
from pathlib import Path

import pytest

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.figures import (
    factors,
    figures,
    heatmap,
    hierarchy,
    save,
)
from orch.analysis.published import OOD
from orch.store import Store
from orch.store.bundled import BUNDLED
from orch.sweeps.scales import LAPTOP, PAPER, SMOKE, Scale
from tests.analysis.drawn import visible_texts
from tests.analysis.invented import invented_row

pytestmark = pytest.mark.thorough

DOCS = Path(__file__).parents[2] / "docs"


def test_the_published_factors_reach_as_far_as_published() -> None:
    found = {each.factors: each.num_states for each in factors.published_reaches()}
    assert found["1"] == 0
    assert found["256"] == 25
    assert found[factors.FULL] == 50


def test_our_reach_is_the_largest_machine_tracked_and_shows_whether_results_are_missing() -> None:
    planned = compare(Board(PAPER), ["factors"])
    scores = {("4", 2): 1.0, ("4", 3): 0.95, ("4", 5): 0.94, ("8", 2): 0.2}
    finished = {
        each.trial_ids[0]: invented_row(each.trial_ids[0], ood_accuracy=score)
        for each in planned
        if (score := scores.get((each.published.key.variant, each.published.key.modulus))) is not None
    }
    comparisons = compare(Board(PAPER, finished), ["factors"])
    assert factors.our_reaches(comparisons) == [factors.Reach("4", 3, False), factors.Reach("8", 0, False)]
    up_to_five = [each for each in comparisons if each.published.key.modulus <= 5]
    assert factors.our_reaches(up_to_five)[0] == factors.Reach("4", 3, True)


def test_a_heat_map_shows_ours_above_the_published_number_and_marks_what_is_missing() -> None:
    [bilinear, *_] = planned = [each for each in compare(Board(SMOKE), ["main"]) if each.published.split == OOD]
    [trial_id] = bilinear.trial_ids
    finished = {trial_id: invented_row(trial_id, ood_accuracy=0.123, stop_reason="diverged")}
    shown = [each for each in compare(Board(SMOKE, finished), ["main"]) if each.published.split == OOD][:2]
    assert shown[0].published == planned[0].published
    texts = [text for text, *_ in visible_texts(heatmap.draw(shown, "Title"))]
    assert {"0.12*", "–", "1.00", "Bilinear", "Modular addition"} <= set(texts)


def tiles(scale: Scale, scores: dict[tuple[str, str], float], fewer: int = 0) -> dict[str, hierarchy.Tile]:
    """Return the tiles of parity by row, from these scores of models and variants with `fewer` trials than planned."""
    finished = {
        trial_id: invented_row(trial_id, ood_accuracy=scores[each.published.key.model, each.published.key.variant])
        for each in compare(Board(scale), ["main"])
        if (each.published.key.model, each.published.key.variant) in scores
        for trial_id in each.trial_ids[fewer:]
    }
    compared = [each for each in compare(Board(scale, finished), ["main"]) if each.published.split == OOD]
    found = hierarchy.tiles(compared)
    assert {modulus for *_, modulus in found} == {2, 3, 5}
    return {row: tile for (row, task, modulus), tile in found.items() if (task, modulus) == ("modular_addition", 2)}


def test_the_hierarchy_has_a_row_for_each_model_even_without_results() -> None:
    found = tiles(PAPER, {("rotation", ""): 0.25, ("mamba", "1"): 0.5})
    assert len(found) == 11
    assert found["Rotation"] == hierarchy.Tile(0.25, 1.0, True)
    assert found["Transformer"] == hierarchy.Tile(None, 0.04, False)
    assert found["Mamba"] == hierarchy.Tile(0.5, 0.0, False), "deeper ones have no results"


def test_the_hierarchy_marks_what_more_trials_might_change() -> None:
    found = tiles(PAPER, {("bilinear", ""): 0.95, ("factored", ""): 0.94}, fewer=1)
    assert found["Bilinear"].conclusive
    assert not found["Factored"].conclusive
    assert tiles(PAPER, {("factored", ""): 0.94})["Factored"].conclusive


def test_the_hierarchy_in_the_readme_is_drawn_from_the_bundled_results(tmp_path: Path) -> None:
    [drawing] = [
        each for each in figures(Board.read(Store.open(BUNDLED), LAPTOP), ["main"]).drawings if each.name == "hierarchy"
    ]
    save(drawing.figure, tmp_path / "hierarchy.svg")
    texts = [re.findall("<!-- (.*?) -->", (folder / "hierarchy.svg").read_text()) for folder in (DOCS, tmp_path)]
    assert len(texts[1]) > 100
    assert texts[0] == texts[1], "README.md has the command that draws it again"
