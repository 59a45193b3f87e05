"""Commands on a store that is missing or empty, and with names and numbers that cannot be meant."""

import pytest

from orch.store import Store
from orch.sweeps.trial import make_trial
from tests.command_line import orch
from tests.finished_trials import finish

READING = [
    ["failures"],
    ["status"],
    ["status", "--json"],
    ["logs"],
    ["results"],
    ["report"],
    ["claims"],
    ["reproduction"],
    ["query", "SELECT * FROM trials"],
    ["bundle", "--output", "unused"],
]
WRITING = [["compact"], ["resume"], ["discard", "--trial", "abc", "--reason", "a test"]]


@pytest.mark.parametrize("arguments", [*READING, *WRITING], ids=" ".join)
def test_a_missing_store_is_one_sentence_with_a_remedy_and_nothing_is_created(arguments, tmp_path):
    place = tmp_path / "nowhere"
    said = orch(*arguments, "--store", place, expect=2)
    [line] = said.stderr.splitlines()
    assert line.startswith(f"error: there are no results at {place}: check the name, or run orch sweep first")
    assert said.stdout == ""
    assert not place.exists()


def test_a_store_without_sweeps_is_not_missing(tmp_path):
    finish(Store.open(tmp_path), [make_trial("dihedral", "rnn", width=8)])
    assert "has no sweeps yet: start one with orch sweep" in orch("status", "--store", tmp_path).output
    assert orch("failures", "--store", tmp_path).output == "no trial has failed\n"


def test_compact_says_in_a_sentence_what_it_did(tmp_path):
    store = Store.open(tmp_path)
    finish(store, [make_trial("dihedral", "rnn", width=8, init_seed=seed) for seed in range(3)])
    assert orch("compact", "--store", tmp_path).output == "merged 3 files into 1 file\n"
    assert orch("compact", "--store", tmp_path).output == "nothing to merge: the store has few small files\n"


def test_discard_names_unknown_ids_and_takes_the_beginning_of_an_id(tmp_path):
    store = Store.open(tmp_path)
    trials = [make_trial("dihedral", "rnn", width=8, init_seed=seed) for seed in range(2)]
    finish(store, trials)
    discard = ("discard", "--store", tmp_path, "--reason", "a test", "--yes")
    said = orch(*discard, "--trial", "nothing", "--trial", trials[0].id, expect=2).stderr
    assert said.startswith(f"error: --trial nothing: {tmp_path} has no such result: copy an id from ")
    assert len(store.done()) == 2, "nothing is withdrawn if one id is wrong"
    assert orch(*discard, "--trial", trials[0].id[:10]).output == "1 result withdrawn\n"
    assert store.done() == {trials[1].id}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models", "--width", "-5"], "error: width -5 is not a width: use 1 or more\n"),
        (["models", "--modulus", "0"], "error: modulus 0 leaves nothing to track: use 2 or more\n"),
        (["doctor", "--seconds", "-1"], "-1.0 is not in the range x>0"),
        (["doctor", "notes.txt"], "error: notes.txt is not a Python file: name a file that ends in .py"),
        (["plan", "mian"], "error: there is no sweep 'mian': did you mean 'main'?\n"),
        (["sweep", "my-sweep"], "error: there is no sweep 'my-sweep': there are: additive,"),
        (["train", "--model", "rnn", "--task", "dihedral", "--trial", "a"], "--trial names a whole trial"),
        (["sweep", "demo", "--weights-mb", "-3"], "error: --weights-mb -3.0 is negative: use 0 to store no weights\n"),
        (["sweep", "demo", "--gpus-per-trial", "1.5"], "1.5 is not a share or a whole number of GPUs: use 1 or less\n"),
        (["sweep", "demo", "--pack", "-2", "--cpus", "0"], "error: --cpus 0 is not enough: use more than 0\n"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in orch(*arguments, expect=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_results_are_grouped_by_seed_as_conditions_name_it(tmp_path):
    finish(Store.open(tmp_path), [make_trial("dihedral", "rnn", init_seed=seed, data_seed=seed) for seed in range(3)])
    shown = orch("results", "--by", "seed,model", "--where", "seed=0,2", "--store", tmp_path, "--format", "csv").output
    header, *rows = shown.splitlines()
    assert header.startswith("seed,model,")
    assert [row.split(",")[:2] for row in rows] == [["0", "rnn"], ["2", "rnn"]]
