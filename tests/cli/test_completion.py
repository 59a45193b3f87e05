"""Completion in a shell: sweeps, models, tasks, settings and files."""

import json
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from orch.cli import main
from tests.new_process import modules_imported
from tests.usercode.conftest import Files

ROOT = Path(__file__).parents[2]


def complete(*words: str) -> list[tuple[str, str]]:
    """Return the type and the value of each completion of the last word."""
    *before, incomplete = words
    found = BashComplete(main, {}, "orch", "_ORCH_COMPLETE").get_completions(before, incomplete)
    return [(item.type, item.value) for item in found]


def values(*words: str) -> list[str]:
    return [value for _, value in complete(*words)]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["plan", "sweep", "results", "report"])
def test_names_of_sweeps_are_completed(command):
    assert values(command, "fa") == ["factors"]
    assert {"main", "all", "demo"} <= set(values(command, ""))


def test_models_tasks_and_settings_are_completed():
    assert values("train", "--model", "b") == ["bilinear", "block_diagonal"]
    assert values("search", "--task", "modular") == ["modular_addition", "modular_arithmetic"]
    assert values("models", "--task", "d") == ["dihedral"]
    assert values("train", "--model", "rnn", "--test-l") == ["--test-length"]


def test_python_files_are_completed_among_the_names_and_other_paths_by_the_shell(tmp_path):
    (tmp_path / "main_study.py").write_text("")
    (tmp_path / "main.txt").write_text("")
    assert complete("plan", "mai") == [("plain", "main"), ("plain", "main_study.py")]
    assert complete("models", "main") == complete("tasks", "main") == [("plain", "main_study.py")]
    assert complete("models", "ma") == [("plain", "mamba"), ("plain", "main_study.py")]
    assert complete("plan", "studies/x") == [("file", "studies/x")]
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "xyz.py").write_text("")
    assert complete("plan", "studies/x") == [("plain", "studies/xyz.py")]


def test_recorded_sweeps_of_the_named_store_are_completed(tmp_path):
    for store, name in (("runs", "mine"), ("elsewhere", "minimal")):
        (tmp_path / store / "sweeps").mkdir(parents=True)
        (tmp_path / store / "sweeps" / f"{name}-smoke-0.json").write_text(json.dumps({"sweeps": [name]}))
    assert values("plan", "mi") == ["mine"]
    assert values("resume", "") == ["mine"]
    assert values("resume", "--store", "elsewhere", "") == ["minimal"]


def test_models_tasks_and_settings_of_a_file_are_completed(tmp_path):
    file = Files(tmp_path).path
    assert values("train", file, "--model", "a") == ["averaging"]
    assert values("train", file, "--task", "l") == ["last"]
    assert values("train", file, "--fla") == ["--flavour"]
    Path(file).write_text("this is no Python")
    assert values("train", file, "--model", "bi") == ["bilinear"], "a broken file breaks no completion"


@pytest.mark.parametrize(("words", "number"), [("orch plan ma", 2), ("orch train --model bi", 3)])
def test_completion_imports_nothing_heavy(words, number):
    variables = {"_ORCH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    program = (
        f"import os\nos.environ |= {variables!r}\nfrom orch.cli import main\n"
        "try:\n    main(prog_name='orch')\nexcept SystemExit:\n    pass"
    )
    heavy = {"torch", "ray", "numpy", "pyarrow", "pandas", "rich", "duckdb", "matplotlib"}
    assert modules_imported(program, heavy) == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_lines_switch_completion_on(shell):
    documented = (ROOT / "docs" / "tutorial.md").read_text()
    assert f"_ORCH_COMPLETE={shell}_source orch" in documented
