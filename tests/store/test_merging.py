"""Merging stores: each result once, with its source; damaged and edited ones are refused; some are trained again."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner

from orch.cli import main
from orch.models.kernel import PLAIN
from orch.running.provenance import packages
from orch.running.verification import choose
from orch.store import Store, curve_rows, trial_row
from orch.sweeps.trial import Trial
from orch.training.train import train
from tests.analysis.finished import finish
from tests.small import small_trial
from tests.store.example import saved


def trials(number: int) -> list[Trial]:
    return [dataclasses.replace(small_trial("rnn"), init_seed=seed) for seed in range(number)]


def merge(*arguments: str, expect: int = 0) -> str:
    result = CliRunner().invoke(main, ["merge", *arguments])
    assert result.exit_code == expect, result.output
    return result.output


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_merge_adds_what_is_new_once_with_its_source_and_leaves_the_other_store_alone(tmp_path: Path) -> None:
    first, second, third = trials(3)
    alice, bob, mine = (Store.open(tmp_path / name) for name in ("alice", "bob", "mine"))
    for store, its in ((alice, (first, second)), (bob, (second, third)), (mine, (first,))):
        for trial in its:
            finish(store, trial, ood=0.25 if store is mine else 0.5)
    bob.put_weights(third.id, saved(b"weights"))
    before = contents(tmp_path / "alice")
    said = merge(alice.uri, bob.uri, "--store", mine.uri)
    assert f"{alice.uri}: 1 new trial, 1 already there, 1 of them with other numbers" in said
    assert f"{bob.uri}: 1 new trial, 1 already there" in said
    assert contents(tmp_path / "alice") == before
    rows = {row["trial_id"]: row for row in mine.read("trials").to_pylist()}
    assert {key: row["source"] for key, row in rows.items()} == {
        first.id: None,
        second.id: alice.uri,
        third.id: bob.uri,
    }
    assert rows[first.id]["ood_accuracy"] == 0.25, "what is there stays"
    assert mine.read("curves").num_rows == 6
    assert mine.get_weights(third.id) == saved(b"weights")
    after = contents(tmp_path / "mine")
    merge(alice.uri, bob.uri, "--store", mine.uri)
    assert contents(tmp_path / "mine") == after, "a second merge writes nothing"
    others = Store.open(tmp_path / "others")
    merge(mine.uri, "--store", others.uri)
    sources = {row["trial_id"]: row["source"] for row in others.read("trials").to_pylist()}
    assert sources == {first.id: mine.uri, second.id: alice.uri, third.id: bob.uri}, "the first source stays"


def test_a_withdrawn_result_does_not_come_back(tmp_path: Path) -> None:
    (trial,) = trials(1)
    alice, mine = Store.open(tmp_path / "alice"), Store.open(tmp_path / "mine")
    finish(alice, trial)
    merge(alice.uri, "--store", mine.uri)
    mine.discard([trial.id], "wrong")
    assert "0 new trials" in merge(alice.uri, "--store", mine.uri)
    assert mine.done() == set()


def test_settings_of_models_without_code_are_kept(tmp_path: Path) -> None:
    (trial,) = trials(1)
    alice, mine = Store.open(tmp_path / "alice"), Store.open(tmp_path / "mine")
    finish(alice, trial)
    config = trial.to_dict()
    config["model"] = {"name": "of_alice", "charm": 7}
    row = alice.read("trials").to_pylist()[0]
    row |= {"trial_id": "f" * 16, "model": "of_alice", "config": json.dumps(config)}
    alice.append("trials", pa.Table.from_pylist([row | {"charm": 7}]))
    merge(alice.uri, "--store", mine.uri)
    found = {row["trial_id"]: row for row in mine.read("trials").to_pylist()}
    assert found["f" * 16]["charm"] == 7
    assert found[trial.id]["charm"] is None


def test_foreign_damaged_and_edited_stores_are_refused_in_one_sentence(tmp_path: Path) -> None:
    def refusal(folder: str) -> str:
        before = contents(tmp_path / folder)
        said = merge(str(tmp_path / folder), "--store", str(tmp_path / "mine"), expect=2)
        assert said.startswith("error: ")
        assert said.count("\n") == 1, said
        assert contents(tmp_path / folder) == before, "someone else's store is never changed"
        assert not (tmp_path / "mine").exists()
        return said

    assert "there are no results at" in refusal("nowhere")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"meow")
    assert "check that it is a store of orch" in refusal("photos")
    first, second = trials(2)
    damaged = Store.open(tmp_path / "damaged")
    for trial in (first, second):
        finish(damaged, trial)
    part = next((tmp_path / "damaged" / "trials").rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-40])
    assert "is damaged" in refusal("damaged")
    edited = Store.open(tmp_path / "edited")
    finish(edited, first, change=lambda row: row | {"trial_id": second.id})
    assert "do not have the id of their settings" in refusal("edited")


def trained_store(folder: Path, change: Any = dict) -> Store:
    store = Store.open(folder)
    for trial in trials(2):
        result = train(trial)
        origin = {"attempt_id": trial.id, "device": "cpu", "threads": 1, "packages": packages()}
        row = trial_row(result, origin | {"kernel": trial.model.kernel_name("cpu")})
        store.write_trial(change(row), curve_rows(result, trial.id))
    return store


def test_verification_finds_equal_bits_and_refuses_what_cannot_be_reproduced(tmp_path: Path) -> None:
    good = trained_store(tmp_path / "good")
    said = merge(good.uri, "--store", str(tmp_path / "mine"), "--verify", "5")
    assert said.count("equal to the last bit") == 2
    assert "2 new trials" in said

    def flip(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"validation_loss": row["validation_loss"] * (1 + 2**-50)}

    wrong = trained_store(tmp_path / "wrong", flip)
    said = merge(wrong.uri, "--store", str(tmp_path / "other"), "--verify", "1", expect=1)
    assert "DIFFERS, made with the same kernel and versions: validation_loss" in said
    assert "nothing was merged" in said
    assert not (tmp_path / "other").exists()

    def older(row: dict[str, Any]) -> dict[str, Any]:
        versions = json.loads(row["packages"]) | {"torch": "1.0"}
        return flip(row) | {"kernel": "of old", "packages": json.dumps(versions)}

    explained = trained_store(tmp_path / "explained", older)
    said = merge(explained.uri, "--store", str(tmp_path / "other"), "--verify", "1")
    assert "another kernel (of old" in said
    assert "torch (1.0" in said
    assert "2 new trials" in said


def test_the_same_seed_chooses_the_same_trials_among_those_that_can_be_trained_again(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    for place, trial in enumerate(trials(8)):
        device = "cpu" if place else "NVIDIA A100"
        finish(store, trial, change=lambda row, device=device: row | {"device": device, "kernel": PLAIN})
    rows = store.read("trials").to_pylist()
    chosen = [row["trial_id"] for row in choose(rows, 3, seed=1)]
    assert chosen == [row["trial_id"] for row in choose(rows[::-1], 3, seed=1)]
    assert chosen != [row["trial_id"] for row in choose(rows, 3, seed=2)]
    assert {row["device"] for row in choose(rows, 99, seed=0)} == {"cpu"}
