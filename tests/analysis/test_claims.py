"""The paper's claims hold on its own numbers, and are judged by the results of any store."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import save

from orch import analysis
from orch.analysis.board import Board
from orch.analysis.claims import CLAIMS, DEMO, Claim, Verdict, evidence_text, judge_store, verdict_text
from orch.analysis.claims.comparison_conditions import Exceeds, NoWorse
from orch.analysis.claims.condition import ConditionState, number
from orch.analysis.claims.evidence import Answer, Evidence, Question, board_evidence
from orch.analysis.claims.judgement import Judgement, judge
from orch.analysis.figures import figures
from orch.analysis.published import TABLES, Key, published_cells
from orch.analysis.report.collect import collect
from orch.analysis.report.page import page
from orch.cli import main
from orch.core.errors import OrchError, UnknownName
from orch.store import Store
from orch.sweeps.experiments import demo
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import LAPTOP, PAPER
from orch.sweeps.selection import Results
from tests.analysis.finished import finish

BY_ID = {claim.id: claim for claim in CLAIMS}
WITHOUT_PUBLISHED_NUMBERS = {"rotation-angles-at-harmonics", "bilinear-as-data-efficient-as-lstm"}
LEARNED_IN_DEMO = {"bilinear": (2, 3), "block_diagonal 2": (2, 3), "block_diagonal 1": (2,), "lstm": (2, 3)}


def answering(claim: Claim, accuracy: Callable[[Question], float | None], settled: bool = True) -> Judgement:
    """Judge a claim by evidence in which every cell has the accuracy that `accuracy` returns for its question."""
    answers = {(each, ""): Answer(accuracy(each), settled, "trial") for each in claim.questions}
    return judge(claim, Evidence(answers))


def published_evidence() -> Evidence:
    """Return the paper's numbers. Where it gives a number twice, the first table counts, which has more numbers."""
    answers: dict[tuple[Question, str], Answer] = {}
    for each in published_cells():
        question = Question(TABLES[each.table].sweep, each.key, each.split)
        answers.setdefault((question, ""), Answer(each.accuracy, settled=True))
    return Evidence(answers)


@pytest.fixture
def demo_store(tmp_path) -> Store:
    """Return a store with results of the demo: the transformer fits only addition modulo 3."""
    store = Store.open(tmp_path / "runs")
    for cell in demo.cells(LAPTOP, Results.none()):
        name, modulus = f"{cell.example.model.name} {cell.variant}".strip(), cell.example.task.modulus
        learned = modulus in LEARNED_IN_DEMO.get(name, ())
        for trial in cell.trials:
            fits = learned or (name, modulus) != ("transformer 1", 2)
            finish(store, trial, ood=1.0 if learned else 0.02, validation=1.0 if fits else 0.14)
    return store


def orch(*arguments: str, expect: int = 0) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == expect, result.output
    return result.stdout


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_holds_on_the_published_numbers_in_all_of_its_scope(claim):
    judgement = judge(claim, published_evidence())
    outcomes = {finding.outcome for part in judgement.readings[0].parts for finding in part.findings}
    if claim.id not in WITHOUT_PUBLISHED_NUMBERS:
        assert outcomes == {ConditionState.HOLDS}
        assert judgement.verdict is Verdict.SUPPORTED
        assert set(judgement.moduli) <= {question.key.modulus for question in claim.questions}
    else:
        assert outcomes == {ConditionState.MISSING}, (
            "it is exempt because nothing is published, and for no other reason"
        )
        assert judgement.verdict is Verdict.NOT_ENOUGH


def test_only_the_two_figures_without_numbers_are_exempt():
    assert BY_ID.keys() > WITHOUT_PUBLISHED_NUMBERS
    assert len(WITHOUT_PUBLISHED_NUMBERS) == 2
    assert len(BY_ID) == len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_cell_of_a_claim_is_planned_at_paper_scale_and_laptop_scale_can_decide_it(claim):
    paper, laptop = (board_evidence(Board(scale), claim.sweeps) for scale in (PAPER, LAPTOP))
    assert all(paper.ask(question, reading) for question in claim.questions for reading in claim.readings)
    for part in claim.parts:
        able = [
            each
            for each in part.conditions
            if all(any(laptop.ask(question, reading) for question in each.questions) for reading in claim.readings)
        ]
        assert len(able) >= part.at_least, part.title


def test_the_demo_supports_what_it_shows_and_leaves_the_rest_open(demo_store):
    [asked] = judge_store(demo_store)
    assert asked.scale == DEMO
    assert {each.claim.id: verdict_text(each) for each in asked.having(Verdict.SUPPORTED)} == {
        "bilinear-learns-addition": "supported for m = 2, 3",
        "diagonal-learns-parity": "supported for m = 2",
        "diagonal-fails-addition": "supported for m = 3",
        "blocks-of-2-learn-addition": "supported for m = 2, 3",
        "transformer-fits-addition": "supported for m = 3",
        "transformer-fails-addition-at-500": "supported for m = 2, 3",
    }
    assert asked.having(Verdict.CONTRADICTED) == []
    fits = next(each for each in asked.judgements if each.claim.id == "transformer-fits-addition")
    assert "unfinished m=2 0.14 so far" in evidence_text(fits), "deeper ones might fit"


def test_one_clear_contradiction_contradicts_and_strict_says_so(demo_store):
    [cell] = [
        cell
        for cell in demo.cells(LAPTOP, Results.none())
        if (cell.example.model.name, cell.example.task.modulus) == ("bilinear", 3)
    ]
    demo_store.discard(cell.trial_ids, "for another result")
    for trial in cell.trials:
        row = demo_store.read("trials").slice(0, 1).to_pylist()[0]
        assert trial.id not in demo_store.done()
        new = {"trial_id": trial.id, "attempt_id": "again", "learning_rate": trial.learning_rate, "ood_accuracy": 0.2}
        demo_store.write("trials", [row | new])
    [asked] = judge_store(demo_store)
    [judgement] = asked.having(Verdict.CONTRADICTED)
    assert judgement.claim.id == "bilinear-learns-addition"
    assert "at 500: against it m=3 0.20, m=2 1.00" in evidence_text(judgement)
    assert set(judgement.trial_ids) & set(cell.trial_ids)
    orch("claims", "--store", demo_store.uri)
    orch("claims", "--store", demo_store.uri, "--strict", expect=1)


def test_parity_alone_is_not_enough_for_a_claim_about_addition():
    claim = BY_ID["blocks-of-2-learn-addition"]
    judgement = answering(claim, lambda question: 1.0 if question.key.modulus == 2 else None)
    assert judgement.verdict is Verdict.NOT_ENOUGH
    assert "m=2 1.00, lacks 1 of m=3, m=5, m=10, 2 more (no result yet)" in evidence_text(judgement)


def test_an_accuracy_between_learning_and_failing_decides_nothing():
    for claim in (BY_ID["diagonal-learns-parity"], BY_ID["diagonal-fails-addition"]):
        judgement = answering(claim, lambda question: 0.8)
        assert judgement.verdict is Verdict.NOT_ENOUGH
        assert "unclear" in evidence_text(judgement)


def test_a_model_has_failed_only_when_every_learning_rate_was_tried():
    learns, fails = BY_ID["diagonal-learns-parity"], BY_ID["diagonal-fails-addition"]
    for claim, verdict in ((learns, Verdict.CONTRADICTED), (fails, Verdict.SUPPORTED)):
        assert answering(claim, lambda question: 0.0).verdict is verdict
        assert answering(claim, lambda question: 0.0, settled=False).verdict is Verdict.NOT_ENOUGH
    for claim, verdict in ((learns, Verdict.SUPPORTED), (fails, Verdict.CONTRADICTED)):
        assert answering(claim, lambda question: 1.0, settled=False).verdict is verdict, "success is final"


def test_a_store_with_one_rate_of_two_has_not_settled_a_failure(tmp_path):
    store = Store.open(tmp_path)
    cells = [cell for cell in demo.cells(LAPTOP, Results.none()) if cell.variant == "1"]
    for cell in cells:
        finish(store, cell.trials[0], ood=0.0)
    [asked] = judge_store(store)
    assert not asked.having(Verdict.SUPPORTED)[1:], "the transformer fits, and nothing has failed"
    for cell in cells:
        finish(store, cell.trials[1], ood=0.0)
    [asked] = judge_store(store)
    assert "diagonal-fails-addition" in {each.claim.id for each in asked.having(Verdict.SUPPORTED)}
    assert "diagonal-learns-parity" in {each.claim.id for each in asked.having(Verdict.CONTRADICTED)}


@pytest.mark.parametrize(
    ("normalised", "not_normalised", "verdict"),
    [
        (0.0, 1.0, Verdict.SUPPORTED),
        (1.0, 0.0, Verdict.SUPPORTED),
        (1.0, 1.0, Verdict.CONTRADICTED),
        (1.0, None, Verdict.NOT_ENOUGH),
    ],
)
def test_one_supported_reading_is_enough_where_the_paper_is_ambiguous(normalised, not_normalised, verdict):
    claim = BY_ID["additive-terms-break-diagonal"]
    answers = {}
    for question in claim.questions:
        if question.key.additive == "none":
            answers[question, ""] = Answer(1.0, settled=True)
        else:
            answers[question, "normalised"] = Answer(normalised, settled=True, trial_id="one")
            answers[question, "not normalised"] = Answer(not_normalised, settled=True, trial_id="other")
    judgement = judge(claim, Evidence(answers))
    assert judgement.verdict is verdict
    assert "State normalised (" in evidence_text(judgement)
    if verdict is Verdict.SUPPORTED:
        name = "normalised" if normalised == 0.0 else "not normalised"
        assert verdict_text(judgement) == f"supported for m = 2, with the state {name}"
    assert "State not normalised (" in evidence_text(judgement)


def test_additive_terms_cannot_help_a_model_that_has_learned_without_them():
    claim = BY_ID["additive-terms-help-blocks-of-2"]
    assert answering(claim, lambda question: 0.1).verdict is Verdict.CONTRADICTED
    assert answering(claim, lambda question: 1.0).verdict is Verdict.NOT_ENOUGH


FIRST, SECOND = (Question("main", Key("state_machine", model, modulus=5)) for model in ("bilinear", "lstm"))


@pytest.mark.parametrize(
    ("condition", "first", "second", "outcome"),
    [
        # A star marks an accuracy with untried learning rates, which can only raise it.
        (Exceeds, "0.9*", "0.5", ConditionState.HOLDS),
        (Exceeds, "0.9", "0.5*", ConditionState.MISSING),
        (Exceeds, "0.5", "0.5*", ConditionState.VIOLATED),
        (Exceeds, "0.5*", "0.5", ConditionState.MISSING),
        (Exceeds, "0.5*", "0.98*", ConditionState.VIOLATED),
        (NoWorse, "1.0*", "1.0*", ConditionState.HOLDS),
        (NoWorse, "0.6*", "0.6", ConditionState.HOLDS),
        (NoWorse, "0.6", "0.6*", ConditionState.MISSING),
        (NoWorse, "0.3", "0.6*", ConditionState.VIOLATED),
        (NoWorse, "0.3*", "0.6", ConditionState.MISSING),
    ],
)
def test_two_models_are_compared_once_no_learning_rate_can_change_the_outcome(condition, first, second, outcome):
    answers = {
        (question, ""): Answer(float(text.rstrip("*")), settled=not text.endswith("*"))
        for question, text in ((FIRST, first), (SECOND, second))
    }
    assert condition("", (FIRST,), (SECOND,)).check(Evidence(answers), "").outcome is outcome


def test_the_number_of_factors_must_grow_with_the_machine():
    claim = BY_ID["more-factors-track-larger-machines"]

    def tracked_from(fewest: Callable[[int], int]) -> Verdict:
        return answering(claim, lambda each: float(int(each.key.variant) >= fewest(each.key.modulus))).verdict

    assert tracked_from(lambda num_states: num_states**2) is Verdict.SUPPORTED
    assert tracked_from(lambda num_states: 8) is Verdict.NOT_ENOUGH
    assert tracked_from(lambda num_states: 256 // num_states) is Verdict.CONTRADICTED
    assert answering(claim, lambda each: None if each.key.variant == "1" else 1.0).verdict is Verdict.NOT_ENOUGH


def test_data_efficiency_is_compared_over_all_sizes():
    claim = BY_ID["bilinear-as-data-efficient-as-lstm"]
    equal = answering(claim, lambda question: 0.5)
    assert equal.verdict is Verdict.SUPPORTED
    assert "m=2 0.50 against 0.50" in evidence_text(equal)
    behind = answering(claim, lambda question: 0.4 if question.key.model == "bilinear" else 0.5)
    assert behind.verdict is Verdict.CONTRADICTED
    one_size_left = answering(claim, lambda question: None if question.key.train_examples == 100 else 0.5)
    assert one_size_left.verdict is Verdict.NOT_ENOUGH


@pytest.mark.parametrize(
    ("harmonics", "verdict"),
    [
        ((1.02, -3.0), Verdict.SUPPORTED),
        ((1.4, -2.6), Verdict.CONTRADICTED),
        ((0.01, 0.02), Verdict.CONTRADICTED),  # planes that do not turn count as no harmonic
        ((10.01, -9.98), Verdict.CONTRADICTED),  # nor do planes that turn full circle
    ],
)
def test_angles_are_read_off_the_weights_in_the_store(harmonics, verdict, tmp_path):
    store = Store.open(tmp_path)
    [cell] = SWEEPS["angles"].cells(LAPTOP, Results.none())
    modulus, width = cell.example.task.modulus, 4
    finish(store, cell.trials[0], validation=1.0, at_100=0.9)
    [judgement] = judge_store(store, "laptop", [BY_ID["rotation-angles-at-harmonics"]])[0].judgements
    assert judgement.verdict is Verdict.NOT_ENOUGH
    assert "no trial of the chosen learning rate has learned it and kept its weights" in evidence_text(judgement)
    embedding = np.zeros((modulus + 2, width), np.float32)
    embedding[:modulus, 0] = np.arange(modulus)
    angle = np.zeros((width // 2, width), np.float32)
    angle[:, 0] = 2 * np.pi / modulus * np.array(harmonics)
    head = np.ones((modulus + 2, width), np.float32)
    weights = {"embedding": embedding, "recurrence.angle": angle, "head.weight": head}
    store.put_weights(cell.trials[0].id, save(weights, {"orch": "{}"}))
    [asked] = judge_store(store, "laptop", [BY_ID["rotation-angles-at-harmonics"]])
    assert asked.judgements[0].verdict is verdict
    assert asked.judgements[0].trial_ids == (cell.trials[0].id,)


def test_angles_of_a_model_that_has_not_learned_are_no_evidence(tmp_path):
    store = Store.open(tmp_path)
    [cell] = SWEEPS["angles"].cells(LAPTOP, Results.none())
    finish(store, cell.trials[0], validation=0.3)
    [asked] = judge_store(store, "laptop", [BY_ID["rotation-angles-at-harmonics"]])
    assert asked.judgements[0].verdict is Verdict.NOT_ENOUGH


def test_a_pipe_has_the_decided_claims_for_people_and_a_count_of_the_others(demo_store):
    [asked] = judge_store(demo_store)
    lines = orch("claims", "--store", demo_store.uri).splitlines()
    assert lines[0] == "Claims at demo scale: 6 supported, 0 contradicted, 19 not enough data"
    assert [line for line in lines if line[0] in "✓✗–"] == [
        f"✓ {judgement.claim.sentence}" for judgement in asked.having(Verdict.SUPPORTED)
    ]
    assert lines[-1].startswith("19 claims not decided yet")
    assert "orch claims --scale demo --all" in lines[-1]
    everything = orch("claims", "--store", demo_store.uri, "--all").splitlines()
    assert len([line for line in everything if line[0] in "✓✗–"]) == len(CLAIMS)


def test_csv_is_printed_on_request_and_json_has_every_number(demo_store):
    rows = list(csv.DictReader(io.StringIO(orch("claims", "--store", demo_store.uri, "--format", "csv"))))
    assert [row["claim"] for row in rows] == [claim.id for claim in CLAIMS]
    assert rows[0] | {"verdict": "supported", "scale": "demo"} == rows[0]
    [shown] = json.loads(orch("claims", "--store", demo_store.uri, "--json", "--scale", "demo"))
    findings = shown["claims"][0]["findings"]
    assert {(each["cell"], each["outcome"]) for each in findings} >= {("m=2", "holds"), ("m=50", "missing")}
    assert all(each["trial_ids"] for each in findings if each["outcome"] == "holds")


def test_a_terminal_shows_a_table_that_fits_its_width(demo_store):
    program = (
        "import os, pty, sys\n"
        "os.environ |= {'COLUMNS': '90', 'TERM': 'xterm'}\n"
        f"sys.exit(pty.spawn([sys.executable, '-m', 'orch', 'claims', '--store', {demo_store.uri!r}]))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "Claims at demo scale: 6 supported, 0 contradicted" in shown
    assert "✓" in shown
    assert "19 claims not decided yet" in shown
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= 90
    assert "\x1b[" in shown, "in colour"


def test_claims_are_judged_at_every_scale_with_results(demo_store, tmp_path):
    cell = next(iter(SWEEPS["main"].cells(LAPTOP, Results.none())))
    finish(demo_store, cell.trials[0], ood=1.0)
    assert [asked.scale for asked in judge_store(demo_store)] == ["laptop", "demo"]
    assert [asked.scale for asked in judge_store(demo_store, "paper")] == ["paper"]
    with pytest.raises(UnknownName, match="did you mean 'laptop'"):
        judge_store(demo_store, "latop")
    with pytest.raises(OrchError, match="there are no results at"):
        judge_store(Store.open(tmp_path / "none"))
    other = Store.open(tmp_path / "other")
    other.put_json("sweeps/a.json", {})
    with pytest.raises(OrchError, match=r"no results that the claims ask for.*run orch sweep demo"):
        judge_store(other)


def test_the_report_shows_the_claims_after_the_results_that_answer_the_question(demo_store):
    report = collect(demo_store, ["demo"], "laptop")
    text = page(report, figures(report.board, ["demo"]))
    assert 0 < text.index('id="results"') < text.index('id="claims"')
    assert "✓ supported for m = 2, 3" in text
    assert "Claims at demo scale: 6 supported" in text
    assert "No results yet (they need additive, " in text
    laptop = collect(demo_store, ["angles"], "laptop")
    assert [each.claim.id for asked in laptop.claims for each in asked.judgements] == ["rotation-angles-at-harmonics"]
    assert collect(demo_store, ["all"], "smoke").claims == []


def test_claims_can_be_a_data_frame_without_torch_or_ray(demo_store):
    program = (
        "import sys, analysis\n"
        f"frame = analysis.load({demo_store.uri!r}).claims().to_pandas()\n"
        "assert (frame.verdict == 'supported').sum() == 6\n"
        "assert not {'torch', 'ray', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert analysis.load(demo_store.uri).claims("paper").num_rows == len(CLAIMS)


@pytest.mark.parametrize(
    ("accuracy", "text"), [(0.95, "0.95"), (0.9499, "0.9499"), (0.4999, "0.4999"), (0.5, "0.50"), (-0.001, "0.00")]
)
def test_an_accuracy_just_below_a_level_is_not_rounded_to_it(accuracy, text):
    assert number(accuracy) == text
