"""The atlas covers every model and task, compares theory with measurement, and answers the field's claims."""

from dataclasses import replace

import pytest

from orch import models, tasks
from orch.analysis.atlas import Outcome, TaskKind, kind_of, read_atlas
from orch.analysis.board import Board
from orch.analysis.claims import FIELD_CLAIMS, Verdict, evidence_text, judge_board, judge_store
from orch.analysis.claims.condition import Fails, FailsThoughItLearns
from orch.analysis.figures import atlas as figure
from orch.analysis.figures import figures
from orch.analysis.report.collect import collect
from orch.analysis.report.page import page
from orch.planning.across_cells import padded
from orch.planning.step_time import step_seconds
from orch.store import Store
from orch.sweeps.experiments import atlas
from orch.sweeps.scales import LAPTOP, PAPER
from orch.sweeps.selection import Results
from orch.tasks.algebra import Verdict as Theory
from orch.tasks.algebra import analyse
from orch.tasks.group import WordProblem
from tests.analysis.finished import finish
from tests.analysis.invented import invented_row

EMPTY = read_atlas(Board(LAPTOP))


def row(trial_id, accuracy, rate=3e-3):
    return invented_row(trial_id, rate, ood_accuracy=accuracy, test_length=100, validation_accuracy=1.0)


def board(accuracy_of, left_out=()):
    """Return a board on which each seed of a tile has the accuracy that `accuracy_of` returns for the tile."""
    rows = {}
    for tile in EMPTY.tiles:
        if tile not in left_out:
            trials = tile.joined.cell.trials
            rows |= {trial.id: row(trial.id, accuracy_of(tile), trial.learning_rate) for trial in trials}
    return Board(atlas.SMALL, rows)


def as_theory_says(tile):
    return 1.0 if tile.prediction.verdict is Theory.CAN else 0.1


def learning_flip_flop(tile):
    """Let every model learn one task, so that its failures count."""
    return 1.0 if tile.task.name == "flip_flop" else as_theory_says(tile)


def test_the_atlas_has_every_model_and_every_task_and_three_seeds_of_each():
    cells = list(atlas.cells(LAPTOP, Results.none()))
    assert {cell.example.model.name for cell in cells} == models.REGISTRY.keys()
    assert {cell.example.task.name for cell in cells} == tasks.REGISTRY.keys()
    assert len(cells) == len(atlas.tasks()) * len(atlas.models(atlas.SMALL)) == len(EMPTY.tiles)
    assert {len(cell.trials) for cell in cells} == {3}
    assert {cell.example.id for cell in cells} == {cell.example.id for cell in atlas.cells(PAPER, Results.none())}


def test_trials_of_several_tasks_with_labels_everywhere_are_estimated_as_one_pack():
    trials = [tile.joined.cell.example for tile in EMPTY.tiles if tile.model == "Bilinear"]
    labels_at_end = [replace(trial, supervision="final") for trial in trials]
    everywhere, at_end = (step_seconds(padded(each), len(each), "cpu") for each in (trials, labels_at_end))
    assert everywhere > at_end


def test_every_kind_of_task_is_in_the_atlas_in_order():
    kinds = [kind_of(analyse(task)) for task in EMPTY.tasks]
    assert [*dict.fromkeys(kinds), TaskKind.UNKNOWN] == list(TaskKind)
    assert kind_of(analyse(WordProblem(group="S4"), limit=5)) is TaskKind.UNKNOWN, "too large is not unsolvable"


def test_titles_tell_models_and_tasks_apart():
    assert len(EMPTY.models) == len(atlas.models(atlas.SMALL))
    assert len({atlas.short_title(task) for task in EMPTY.tasks}) == len(EMPTY.tasks)


def test_results_as_theory_predicts_agree_everywhere():
    found = read_atlas(board(as_theory_says))
    assert found.disagreements == []
    able = {tile.model for tile in EMPTY.tiles if tile.prediction.verdict is Theory.CAN}
    outcomes = {Outcome.AGREES, Outcome.NO_PREDICTION}
    assert {tile.outcome for tile in found.tiles if tile.model in able} == outcomes
    assert Outcome.AGREES not in {tile.outcome for tile in found.tiles if tile.model not in able}


def test_models_that_have_learned_nothing_are_no_evidence_for_theory_or_claims():
    untrained = board(lambda tile: 0.0)
    found = read_atlas(untrained)
    assert found.having(Outcome.AGREES) == []
    assert len(found.having(Outcome.NO_EVIDENCE)) == sum(
        tile.prediction.verdict is Theory.CANNOT for tile in found.tiles
    )
    judged = judge_board(untrained)
    assert judged.having(Verdict.SUPPORTED) == []
    fails = next(each for each in judged.judgements if each.claim.id == "positive-eigenvalues-fail-parity")
    assert "failed, but learned no task so far" in evidence_text(fails)
    assert fails.has_results
    assert fails.sureness.leaning is Verdict.NOT_ENOUGH


def test_one_seed_of_three_settles_no_failure():
    [claim] = [each for each in FIELD_CLAIMS if each.id == "positive-eigenvalues-fail-parity"]
    whole = board(learning_flip_flop)
    first = {tile.joined.cell.trial_ids[0] for tile in EMPTY.tiles}
    one_seed = Board(atlas.SMALL, {key: row for key, row in whole.finished.items() if key in first})
    assert [judge_board(each, [claim]).judgements[0].verdict for each in (one_seed, whole)] == [
        Verdict.NOT_ENOUGH,
        Verdict.SUPPORTED,
    ]


def test_a_remark_goes_by_one_seed_and_the_first_length_at_which_it_fails():
    able = next(tile for tile in EMPTY.tiles if tile.prediction.verdict is Theory.CAN)
    unable = next(tile for tile in EMPTY.tiles if tile.prediction.verdict is Theory.CANNOT)

    def remark(tile, *curves):
        rows = {}
        for trial_id, curve in zip(tile.joined.cell.trial_ids, curves, strict=True):
            points = [{"length": 20 * place, "accuracy": score} for place, score in enumerate(curve, 1)]
            rows[trial_id] = row(trial_id, curve[-1]) | {"length_curve": points}
        [found] = [each for each in read_atlas(Board(LAPTOP, rows)).tiles if each.num_finished]
        return found.remark

    gap, short = (1.0, 0.5, 1.0, 1.0, 0.1), (0.1, 1.0, 1.0, 0.1, 0.1)
    assert remark(able, gap, short, short) == "fits trained lengths and holds up to 20 inputs"
    lucky, failed = (1.0, 0.9, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0, 0.1)
    assert remark(unable, lucky, failed, failed).startswith("fails at 40 inputs")
    assert remark(unable, lucky, (1.0,) * 5, failed).startswith("holds at all tested lengths")


def test_every_disagreement_is_found_and_failure_counts_only_with_all_seeds():
    found = read_atlas(board(lambda tile: 1.1 - as_theory_says(tile)))
    for tile in found.tiles:
        expected = {Theory.CAN: Outcome.NOT_FOUND, Theory.CANNOT: Outcome.UNFORESEEN}
        assert tile.outcome is expected.get(tile.prediction.verdict, Outcome.NO_PREDICTION)
        assert bool(tile.remark) == (tile in found.disagreements)
    able = next(tile for tile in EMPTY.tiles if tile.prediction.verdict is Theory.CAN)
    first, *_ = able.joined.cell.trial_ids
    [unsettled] = [
        tile
        for tile in read_atlas(Board(LAPTOP, {first: row(first, 0.1)})).tiles
        if tile.joined.cell.trial_ids == able.joined.cell.trial_ids
    ]
    assert unsettled.outcome is Outcome.NOT_MEASURED, "other seeds may still learn it"
    assert unsettled.share == 0


def test_a_partly_measured_atlas_is_drawn_with_blank_tiles():
    left_out = EMPTY.tiles[::3]
    drawn = figure.draw(read_atlas(board(as_theory_says, left_out)), "Atlas")
    [axes] = drawn.axes
    shares = [text.get_text() for text in axes.texts if "/" in text.get_text()]
    assert len(shares) == len(EMPTY.tiles) - len(left_out) + 2, "the key has two"
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == len(left_out) + 1


def test_as_many_tiles_are_hatched_as_are_counted_as_not_measured():
    first = {tile.joined.cell.trial_ids[0] for tile in EMPTY.tiles[::2]}
    rows = board(as_theory_says).finished
    found = read_atlas(Board(LAPTOP, {key: rows[key] for key in first}))
    [axes] = figure.draw(found, "Atlas").axes
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == len(found.having(Outcome.NOT_MEASURED)) + 1, "the key has one"


def test_an_atlas_without_results_is_not_drawn():
    gallery = figures(Board(LAPTOP), [atlas.SMALL.name])
    assert gallery.left_out["atlas"] == "the atlas has no results yet"


def test_claims_of_the_field_are_supported_where_models_do_what_is_claimed():
    keys = {id(condition): condition for claim in FIELD_CLAIMS for part in claim.parts for condition in part.conditions}
    assert not [each for each in keys.values() if isinstance(each, Fails) and not each.controls]
    failing = {each.questions[0].key for each in keys.values() if isinstance(each, FailsThoughItLearns)}
    learning = {each.questions[0].key for each in keys.values() if not isinstance(each, Fails)}
    assert not failing & learning, "claims contradict each other"
    judged = judge_board(board(learning_flip_flop))
    assert {each.claim.id: each.verdict for each in judged.judgements} == dict.fromkeys(
        (claim.id for claim in FIELD_CLAIMS), Verdict.SUPPORTED
    )
    assert "begins at 0.44" in judged.caution
    assert judged.sure_summary == f"0 supported, 0 contradicted, {len(FIELD_CLAIMS)} undecided"
    assert judge_board(board(learning_flip_flop), confidence=0.6).caution == ""
    judged = judge_board(board(lambda tile: 1.0))
    contradicted = {each.claim.id for each in judged.having(Verdict.CONTRADICTED)}
    assert "positive-eigenvalues-fail-parity" in contradicted
    assert "negative-eigenvalues-learn-parity" not in contradicted


@pytest.mark.parametrize("claim", FIELD_CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_of_the_field_names_its_source_and_is_open_without_results(claim):
    assert "arXiv:" in claim.source
    judged = judge_board(Board(atlas.SMALL), [claim])
    assert judged.summary == "0 supported, 0 contradicted, 1 not enough data"


def test_a_store_is_asked_and_its_report_lists_each_disagreement_with_its_trials(tmp_path):
    store = Store.open(tmp_path / "runs")
    tile = next(each for each in EMPTY.tiles if each.prediction.verdict is Theory.CANNOT)
    for trial in tile.joined.cell.trials:
        finish(store, trial, ood=1.0)
    [judged] = judge_store(store)
    assert judged.title == "Claims of the field, by the atlas"
    report = collect(store, ["atlas"], "laptop")
    text = page(report, figures(report.board, ["atlas"]))
    assert "Where they disagree" in text
    assert "atlas at its own scale" in text
    assert text.index('id="atlas"') < text.index('id="claims"') < text.index('id="results"')
    assert f"{tile.joined.cell.trial_ids[0]} 1.00" in text
    assert "Claims of the field, by the atlas" in text
