"""How sure the verdict on a claim is: every seed is asked alone, and more are planned where they do not suffice."""

import dataclasses

import pytest
from click.testing import CliRunner

from orch.analysis.board import Board
from orch.analysis.claims import CLAIMS, Verdict, judge_board, judge_store, missing_seeds, sureness_text, sweep_file
from orch.analysis.claims.claim import Claim, ClaimPart, ask
from orch.analysis.claims.comparison_conditions import Exceeds
from orch.analysis.claims.condition import ConditionState, Fails, Learns
from orch.analysis.claims.evidence import Answer, Evidence
from orch.analysis.claims.judgement import judge
from orch.analysis.statistics import Share
from orch.cli import main
from orch.store import Store
from orch.sweeps.experiments import main as table_1
from orch.sweeps.scales import LAPTOP
from orch.sweeps.selection import Results
from orch.usercode import name_sweeps
from tests.analysis.finished import finish

ONE, OTHER = ask("modular_addition", 2, "bilinear"), ask("modular_addition", 2, "lstm")
PARITY = next(claim for claim in CLAIMS if claim.id == "diagonal-learns-parity")


def answer(*accuracies: float) -> Answer:
    by_seed = {seed: (f"trial {seed}", accuracy) for seed, accuracy in enumerate(accuracies)}
    return Answer(max(accuracies), settled=True, trial_id="best", by_seed=by_seed)


def judged(condition, **answers: Answer):
    claim = Claim(id="a", sentence="A.", parts=(ClaimPart("", [condition]),))
    questions = {"one": ONE, "other": OTHER}
    return judge(claim, Evidence({(questions[name], ""): each for name, each in answers.items()}))


def test_one_lucky_seed_supports_a_claim_by_the_papers_reading_and_not_for_most_seeds():
    found = judged(Learns("m=2", (ONE,)), one=answer(1.0, 0.0, 0.1, 0.0, 0.1))
    assert found.verdict is Verdict.SUPPORTED
    assert found.sureness.verdict is Verdict.NOT_ENOUGH
    assert found.sureness.leaning is Verdict.CONTRADICTED
    assert found.sureness.weakest.share == Share(4, 5)
    assert found.sureness.more_seeds == 6, "four fifths of eleven seeds exclude one half"
    assert sureness_text(found) == (
        "not sure: 4 of 5 seeds (0.38–0.96) for m=2; 6 more seeds would settle it as contradicted"
    )


@pytest.mark.parametrize(("condition", "sure"), [(Learns, Verdict.SUPPORTED), (Fails, Verdict.CONTRADICTED)])
def test_four_equal_seeds_are_sure_and_three_are_not(condition, sure):
    assert judged(condition("m=2", (ONE,)), one=answer(1.0, 1.0, 1.0)).sureness.more_seeds == 1
    found = judged(condition("m=2", (ONE,)), one=answer(1.0, 1.0, 1.0, 0.96)).sureness
    assert (found.verdict, found.more_seeds, found.settling) == (sure, None, [])


def test_a_comparison_pairs_the_seeds_that_both_models_have():
    one, other = answer(1.0, 1.0, 0.2, 1.0), answer(0.1, 0.99, 0.1)
    [finding] = judged(Exceeds("m=2", (ONE,), (OTHER,)), one=one, other=other).sureness.readings[0].findings
    assert finding.seeds == (0, 1, 2)
    assert (finding.outcome, finding.share) == (ConditionState.HOLDS, Share(2, 3))


def test_without_seeds_nothing_is_sure_and_nothing_is_said():
    found = judged(Learns("m=2", (ONE,)), one=Answer(1.0, settled=True))
    assert (found.verdict, found.sureness.verdict) == (Verdict.SUPPORTED, Verdict.NOT_ENOUGH)
    assert (found.sureness.weakest, found.sureness.more_seeds, sureness_text(found)) == (None, None, "")


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store in which the diagonal model learns parity with both seeds of the laptop scale."""
    store = Store.open(tmp_path / "runs")
    for trial in parity_cell().trials:
        finish(store, trial, ood=1.0, at_100=1.0)
    return store


def parity_cell():
    return next(
        cell
        for cell in table_1.cells(LAPTOP, Results.none())
        if (cell.example.model.name, cell.variant, cell.example.task.modulus) == ("block_diagonal", "1", 2)
    )


def test_the_planned_seeds_are_a_sweep_that_settles_the_claim(store, tmp_path):
    board = Board.read(store, LAPTOP)
    [cell] = missing_seeds(board, judge_board(board, [PARITY]))
    assert (cell.seeds, cell.claims) == ((2, 3), (PARITY.id,))
    path = tmp_path / "undecided.py"
    result = CliRunner().invoke(main, ["claims", "--plan", "--store", store.location, "--output", str(path)])
    assert result.exit_code == 0, result.output
    assert path.read_text() == sweep_file([cell], 0.95)
    [made] = name_sweeps([str(path)]).catalogue.sweeps["undecided"].cells(LAPTOP, Results.none())
    assert [trial.id for trial in made.trials] == [trial.id for trial in cell.trials]
    for trial in made.trials:
        finish(store, trial, ood=1.0, at_100=1.0)
    [after] = judge_store(store, "laptop", [PARITY])
    assert after.judgements[0].sureness.verdict is Verdict.SUPPORTED, "seeds of every sweep count"
    assert after.sure_summary == "1 supported, 0 contradicted, 0 undecided"
    assert missing_seeds(Board.read(store, LAPTOP), after) == []


def test_seeds_of_other_settings_or_other_rates_do_not_count(store):
    trial = dataclasses.replace(parity_cell().example, init_seed=7, data_seed=7)
    finish(store, dataclasses.replace(trial, steps=7), ood=0.0)
    finish(store, dataclasses.replace(trial, learning_rate=0.5), ood=0.0)
    [found] = judge_store(store, "laptop", [PARITY])
    assert found.judgements[0].sureness.weakest.share == Share(2, 2)


def test_bad_options_are_named_at_once(store):
    options = ["claims", "--store", store.location, "--plan", "--confidence", "1.5", "--output", "seeds.csv"]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 2
    assert "--confidence 1.5 is not between 0.5 and 1" in result.stderr
    assert "--output seeds.csv is no sweep file" in result.stderr
