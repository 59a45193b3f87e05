"""The checklist says what the store has recorded, and calls what is missing missing."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from orch.analysis.checklist import Answer, checklist
from orch.analysis.study import Study
from orch.cli import main
from orch.store import Store
from tests.analysis.finished import finish, trials
from tests.analysis.test_latex import compile_latex, needs_pdflatex
from tests.store.attempts import write_attempt


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with two learning rates of two seeds, one of which diverged, and one attempt that failed."""
    store = Store.open(tmp_path / "runs")
    origin = {"host": "node", "device": "cpu", "threads": 2, "git_commit": "a" * 40, "packages": '{"torch": "2.13"}'}
    for place, trial in enumerate(trials()):
        edited = {"git_dirty": place == 0, "seconds": 1800.0, "peak_memory_mb": 100.0 + place}
        finish(store, trial, diverged=place == 3, change=lambda row, edited=edited: row | origin | edited)
    for event, minute, outcome in (("start", 0, None), ("end", 30, "failed")):
        write_attempt(store, "lost", event, minute, outcome, trial_id=trials()[0].id)
    return store


def answers(store: Store) -> dict[int, Answer]:
    study = Study(store.uri)
    return {answer.number: answer for answer in checklist(study, study.trials)}


def test_the_answers_are_what_was_recorded(store: Store) -> None:
    found = answers(store)
    said = {number: " ".join(answer.sentences) for number, answer in found.items()}
    assert "4 finished training runs; 1 run diverged" in said[4]
    assert found[5].verdict == "Partly", "one run had code beyond its commit"
    assert "aaaaaaaaaaaa (4 runs)" in said[5]
    assert ("torch", "2.13") in found[5].facts
    assert "Of 2 learning rates" in said[6]
    assert "at 100 inputs" in said[6]
    facts = dict(found[6].facts)
    assert (facts["learning rate"], facts["init seed"], facts["model"]) == ("1e-3, 1e-2", "0, 1", "rnn")
    assert "rank" not in facts, "a setting that no run has"
    assert "1 combination of model, task and settings, with 2 to 2 seeds" in said[7]
    assert "2.0 hours" in said[8]
    assert "1 attempt that gave no result took 30.0 minutes" in said[8]
    assert dict(found[8].facts)["cpu, 2 threads"].startswith("4 runs, 2.0 hours in all, median 1800.0 s")


def test_what_was_not_recorded_is_said_to_be_missing(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    finish(store, trials()[0])
    found = answers(store)
    assert found[5].verdict == "Partly"
    assert "The commit was not recorded for 1 run." in found[5].sentences
    assert "Without an interval: 1 combination with a single seed." in found[7].sentences
    assert "Attempts that gave no result were not recorded." in found[8].sentences
    assert "memory not recorded" in dict(found[8].facts)["device not recorded"]


@needs_pdflatex
@pytest.mark.thorough
def test_latex_compiles_and_a_selection_without_trials_is_one_sentence(store: Store, tmp_path: Path) -> None:
    def orch(*arguments: str, expect: int = 0) -> str:
        result = CliRunner().invoke(main, ["checklist", "--store", store.uri, *arguments])
        assert result.exit_code == expect, result.output
        return result.output

    orch("--format", "latex", "--output", str(tmp_path / "checklist.tex"))
    compile_latex(tmp_path, (tmp_path / "checklist.tex").read_text())
    assert orch("--where", "modulus=2", expect=2).count("\n") == 1
    assert orch().startswith("## 4. Experimental result reproducibility\n\nAnswer: Yes.")
