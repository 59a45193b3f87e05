"""The command line: light help, clear errors, clean output."""

import io
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from orch import models
from orch.cli import main
from orch.core.errors import OrchError
from orch.tasks import REGISTRY
from orch.training.checkpoints import load_model
from tests.command_line import orch
from tests.new_process import command_imports

QUICK = [
    *("--width", "16", "--steps", "20", "--eval-every", "10", "--validation-samples", "64"),
    *("--test-samples", "32", "--test-length", "40", "--curve-lengths", "10,40"),
]


def commands():
    return main.list_commands(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_that_ends_with_an_example(command):
    text = orch(command, "--help").output
    before_options = text.split("Options:")[0]
    assert f"Example: orch {command}" in before_options


def test_the_list_of_commands_shows_whole_sentences():
    sections = orch("--help").output.split("Options:")[1].strip().split("\n\n")[1:]
    lines = [line for section in sections for line in section.splitlines()[1:]]
    assert sorted(line.split()[0] for line in lines) == sorted(commands()), "each command is in one section"
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_the_map_of_the_folders_names_files_that_exist():
    root = Path(__file__).parents[1]
    rows = [line.split(" | ") for line in (root / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| `")]
    named = [
        (folder, name)
        for cell, contents, *_ in rows
        if "/`" in cell
        for folder in re.findall(r"`([a-z_/]+)/`", cell)[:1]
        for name in re.findall(r"`([a-z_]+\.py)`", contents)
    ]
    assert len(named) > 30
    assert [each for each in named if not list((root / each[0]).rglob(each[1]))] == []


def test_the_answers_of_the_map_name_what_the_files_define():
    root = Path(__file__).parents[1]
    text = (root / "CONTRIBUTING.md").read_text()
    table = text[text.index("### Questions and answers") : text.index("## How to add something")]
    named = re.findall(r"`([A-Za-z_.]+)` in `([a-z_/]+\.py)`", table)
    assert len(named) > 10
    for name, path in named:
        source = (root / path).read_text()
        for part in name.split("."):
            assert re.search(rf"^ *((def|class) {part}\b|{part} =)", source, re.MULTILINE), f"{name} is not in {path}"


@pytest.mark.parametrize("arguments", [["--help"], *[[command, "--help"] for command in commands()]])
def test_help_imports_nothing_heavy(arguments):
    heavy = {"torch", "ray", "transformers", "numpy", "pyarrow", "pandas", "rich", "duckdb", "matplotlib"}
    assert command_imports(arguments, heavy) == set()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("trian", "there is no command 'trian': did you mean 'train'?"),
        ("--versoin", "there is no option '--versoin': did you mean '--version'?"),
        ("train --modlus 5", "there is no option '--modlus': did you mean '--modulus'?"),
        ("sweeps --zzz", "there is no option '--zzz': orch sweeps --help lists them"),
        ("train --steps x", "invalid value for '--steps': 'x' is not a valid integer; orch train --help explains it"),
        ("plan", "missing argument 'SWEEP…|FILE.py…|all'; orch plan --help explains it"),
        ("cluster check", "missing argument 'FILE'; orch cluster check --help explains it"),
    ],
)
def test_a_wrong_command_line_gets_one_sentence_in_the_style_of_all_errors(command, said):
    assert orch(*command.split(), expect=2).stderr == f"error: {said}\n"


def test_without_a_terminal_a_question_is_an_error_that_names_the_option(monkeypatch):
    from orch.cli._options import confirm

    confirm("Go on?", yes=True)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(OrchError, match="no terminal to ask for consent: repeat the command with --yes"):
        confirm("Go on?", yes=False)


def test_models_lists_every_model_and_its_parameters():
    rows = json.loads(orch("models", "--json").output)
    assert {row["model"]: row["parameters"] for row in rows}["bilinear"] == 16_781_063


@pytest.mark.parametrize("name", sorted(models.REGISTRY))
def test_models_describes_a_model_with_its_equation_settings_and_sizes(name):
    shown = json.loads(orch("models", name, "--json").output)
    assert re.search(r"\(\d{4}|\d{4}\)|torch|paper", shown["equation"]), "it names a source"
    assert "Shapes " not in shown["equation"]
    assert {row["setting"] for row in shown["settings"]} == {each.name for each in fields(models.REGISTRY[name])}
    assert all(row["meaning"] for row in shown["settings"])
    assert [row["scale"] for row in shown["parameters"]] == ["paper", "laptop", "smoke"]


def test_models_counts_parameters_with_the_given_settings():
    (usual,) = json.loads(orch("models", "delta_product", "--width", "64", "--json").output)["parameters"]
    (larger,) = json.loads(orch("models", "delta_product", "--width", "64", "--householders", "4", "--json").output)[
        "parameters"
    ]
    assert larger["parameters"] > usual["parameters"]
    assert "there is no setting of model rnn 'gated'" in orch("models", "rnn", "--gated", expect=2).stderr
    assert "name the model too" in orch("models", "--heads", "2", expect=2).stderr
    assert not command_imports(["models", "lstm"], {"torch", "ray"})


def test_matched_models_have_the_published_counts():
    rows = json.loads(orch("models", "--matched", "--json").output)
    assert len(rows) == 8
    assert all(row["parameters"] == row["published"] for row in rows)


def test_models_refuses_unknown_tasks_and_invalid_widths():
    assert "did you mean 'dihedral'" in orch("models", "--task", "dihedrl", expect=2).output
    assert "width 255 is odd" in orch("models", "--width", "255", expect=2).output


def test_tasks_lists_every_task_with_an_example():
    rows = json.loads(orch("tasks", "--json", "--modulus", "3").output)
    assert {row["task"] for row in rows} == set(REGISTRY)
    assert all("[EOI] →" in row["example"] for row in rows)


def test_tasks_shows_the_algebra_of_a_task_with_its_settings():
    shown = json.loads(orch("tasks", "group", "--group", "S5:swaps", "--json").output)
    assert (shown["algebra"]["num_elements"], shown["algebra"]["is_solvable"]) == (120, False)
    assert shown["predictions"]["complex_diagonal"]["verdict"] == "cannot"
    said = orch("tasks", "flip_flop").output
    assert re.search(r"aperiodic \(star-free\) +yes", said)
    assert "Sarrof et al., 2024: The Expressive Capacity of State Space Models" in said
    large = orch("tasks", "state_machine", "--modulus", "10").output
    assert re.search(r"elements of the transition monoid +more than 100,000", large)
    assert "the monoid has more than 100,000 elements" in large


def test_train_reads_the_table_of_an_automaton_from_a_file(tmp_path):
    (tmp_path / "parity.csv").write_text("0,1\n1,0\n")
    asked = ["train", "--model", "rnn", "--task", "automaton", *QUICK, "--json"]
    trials = [
        json.loads(orch(*asked, *given).stdout)["trial"]
        for given in (["--table", str(tmp_path / "parity.csv")], ["--table", '{"next": [[0, 1], [1, 0]]}'])
    ]
    assert [trial["task"]["table"] for trial in trials] == ['{"next":[[0,1],[1,0]]}'] * 2
    assert trials[0]["task"]["called"] == "parity"
    bad = orch(*asked, "--table", str(tmp_path / "absent.csv"), expect=2).stderr
    assert bad.startswith("error: there is no file ")


def test_tasks_refuses_what_cannot_be_shown():
    assert "did you mean 'group'?" in orch("tasks", "groups", expect=2).stderr
    assert "name the task too" in orch("tasks", "--group", "S5", expect=2).stderr
    assert (
        "there is no setting of task even_pairs 'group'"
        in orch("tasks", "even_pairs", "--group", "S5", expect=2).stderr
    )
    assert "did you mean 'S5'?" in orch("tasks", "group", "--group", "s5", expect=2).stderr
    assert "name one of each" in orch("tasks", "group", "automaton", expect=2).stderr


def test_train_tests_no_length_beyond_the_only_one_given():
    from orch.cli.train import resolve_trial

    def lengths(**given):
        return resolve_trial("rnn", "dihedral", None, None, given).tested_lengths

    assert lengths(test_length=40) == (10, 20, 40)
    assert lengths(curve_lengths=(10, 30)) == (10, 30)
    assert lengths(test_length=40, curve_lengths=(100,)) == (40, 100)
    assert lengths() == (10, 20, 50, 100, 200, 500)


def test_train_json_is_one_object_and_nothing_else():
    result = orch("train", "--model", "rnn", "--task", "modular_addition", "--modulus", "2", *QUICK, "--json")
    summary = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert {"validation_accuracy", "ood_accuracy", "steps", "seconds", "length_curve"} <= set(summary)
    assert summary["steps"] == 20
    assert set(summary["length_curve"]) == {"10", "40"}
    assert summary["trial"]["task"] == {"name": "modular_addition", "modulus": 2}


def test_a_diverged_trial_is_still_valid_json():
    result = orch("train", "--model", "rnn", "--task", "dihedral", *QUICK, "--learning-rate", "1e38", "--json")
    summary = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert summary["stop_reason"] == "diverged"
    assert summary["validation_loss"] is None


def test_train_shows_the_length_curve():
    output = orch("train", "--model", "rnn", "--task", "modular_arithmetic", *QUICK).stdout
    assert "rnn on modular_arithmetic modulo 5" in output
    assert "2–10" in output
    assert "commonest answer" in output


def test_all_impossible_settings_are_reported_before_anything_starts():
    result = orch(
        "train",
        "--model",
        "rotation",
        "--task",
        "dihedral",
        "--width",
        "255",
        "--modulus",
        "1",
        "--steps",
        "0",
        expect=2,
    )
    assert [line.split()[:2] for line in result.stderr.splitlines()] == [
        ["error:", "modulus"],
        ["error:", "width"],
        ["error:", "steps"],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "bilinaer", "--task", "dihedral"], "did you mean 'bilinear'"),
        (["--model", "bilinear", "--task", "dihedrall"], "did you mean 'dihedral'"),
        (["--model", "bilinear", "--task", "dihedral", "--rank", "4"], "no setting of bilinear on dihedral 'rank'"),
        (["--model", "rnn", "--task", "dihedral", "--widht", "4"], "--width"),
        (["--model", "rnn", "--task", "dihedral", "--curve-lengths", "10;20"], "write it like 10,20,50"),
        (["--model", "rnn", "--task", "dihedral", "--device", "cuda:99"], "use --device cpu"),
        (["--model", "rnn", "--task", "dihedral", "--device", "abacus"], "use cpu, cuda or auto"),
        (["--model", "rnn", "--task", "dihedral", "--save", "/no/such/folder/model"], "make the folder"),
        (["--model", "rnn", "--task", "dihedral", "--epochs", "3"], "give --train-examples too"),
        (["--model", "rnn", "--task", "dihedral", "--threads", "0"], "--threads 0"),
    ],
)
def test_bad_input_gets_one_sentence_with_a_remedy(arguments, message):
    if "cuda" in str(arguments) and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    result = orch("train", *QUICK, *arguments, expect=2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_fixed_training_set_is_trained_on_for_a_thousand_epochs_by_default():
    from orch.cli.train import resolve_trial

    trial = resolve_trial("rnn", "dihedral", None, None, {"train_examples": 100})
    assert (trial.steps, trial.min_inputs, trial.max_inputs) == (2000, 10, 10)
    assert resolve_trial("rnn", "dihedral", 7, 3, {"train_examples": 100}).steps == 6


def test_the_seed_option_sets_the_seeds_of_initialisation_and_data():
    from orch.cli.train import resolve_trial

    trial = resolve_trial("rnn", "dihedral", 7, None, {})
    assert (trial.init_seed, trial.data_seed, trial.eval_seed) == (7, 7, 0)


def test_a_saved_model_can_be_loaded_and_used(tmp_path):
    path = tmp_path / "model.safetensors"
    output = orch("train", "--model", "bilinear", "--task", "modular_addition", *QUICK, "--save", str(path)).stdout
    assert "load_model(" in output
    network, trial = load_model(path)
    tokens = torch.tensor([[[trial.task.bos, 1, 2, trial.task.eoi]]])
    assert network(tokens, torch.tensor([[3]])).shape == (1, 1, trial.task.vocabulary)


INTERRUPT = """
import os, signal, sys
from orch.training import train as training
from orch.cli import main
train_step = training.Training._train_step
def interrupted(self):
    train_step(self)
    if self.step == 18:
        os.kill(os.getpid(), signal.SIGINT)  # Ctrl-C in the middle of training
if sys.argv.pop(1) == "interrupt":
    training.Training._train_step = interrupted
main()
"""


@pytest.mark.thorough
def test_an_interrupted_run_continues_from_its_checkpoint_to_the_same_numbers(tmp_path):
    checkpoint = tmp_path / "trial.safetensors"
    arguments = [
        "train",
        "--model",
        "rnn",
        "--task",
        "dihedral",
        *QUICK,
        "--steps",
        "40",
        "--eval-every",
        "15",
        "--json",
    ]

    def run(how, *extra):
        command = [sys.executable, "-c", INTERRUPT, how, *arguments, *extra]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    stopped = run("interrupt", "--checkpoint", str(checkpoint))
    assert stopped.returncode == 130
    assert "interrupted at step 25" in stopped.stderr
    assert checkpoint.exists()
    continued = json.loads(run("go", "--checkpoint", str(checkpoint)).stdout)
    whole = json.loads(run("go").stdout)
    assert not checkpoint.exists()
    assert continued["length_curve"] == whole["length_curve"]
    assert continued["validation_loss"] == whole["validation_loss"]


def test_a_checkpoint_of_another_trial_is_refused(tmp_path):
    from orch.training.checkpoints import save_snapshot
    from orch.training.train import Training
    from tests.small import small_trial

    save_snapshot(tmp_path / "other", Training([small_trial("lstm")]).snapshot())
    result = orch(
        "train", "--model", "rnn", "--task", "dihedral", *QUICK, "--checkpoint", str(tmp_path / "other"), expect=2
    )
    assert "holds another trial (lstm on modular_addition modulo 5)" in result.stderr


@pytest.mark.parametrize(("option", "thing"), [("--save", "a saved model"), ("--checkpoint", "a checkpoint")])
def test_train_writes_over_no_file_that_is_not_its_own(option, thing, tmp_path):
    trial = ("train", "--model", "rnn", "--task", "dihedral", *QUICK)
    notes = tmp_path / "notes.txt"
    notes.write_text("three years of work")
    said = orch(*trial, option, notes, expect=2).stderr
    assert said == f"error: {option} {notes} is there and is not {thing} of orch: name another file, or delete it\n"
    assert notes.read_text() == "three years of work"


def test_a_saved_model_is_replaced_by_the_next_but_never_by_a_checkpoint(tmp_path):
    trial = ("train", "--model", "rnn", "--task", "dihedral", *QUICK)
    saved = tmp_path / "model.safetensors"
    orch(*trial, "--save", saved, "--seed", "1")
    orch(*trial, "--save", saved, "--seed", "2")
    assert load_model(saved)[1].init_seed == 2
    assert f"{saved} is there and is not a checkpoint" in orch(*trial, "--checkpoint", saved, expect=2).stderr
    said = orch(*trial, "--checkpoint", tmp_path / "x", "--save", tmp_path / "x", expect=2).stderr
    assert said == "error: --save and --checkpoint name one file: name two\n"
