"""`import orch` is fast, exports the documented names, and is understood by type checkers."""

import ast
import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import orch
from tests.new_process import modules_imported, run_python

ROOT = Path(__file__).parents[1]
PROMISED = {
    "Cell", "ModelConfig", "Network", "OrchError", "PerTrial", "Scale", "Store", "Task", "Trial", "__version__", "load",
    "make_trial", "setting", "train",
}  # fmt: skip


def test_importing_orch_loads_nothing_beyond_the_standard_library():
    program = """
import sys
before = set(sys.modules)
import orch
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - sys.stdlib_module_names))
print(*[name for name in sys.modules if name.startswith("orch.")])
"""
    assert run_python(program).splitlines() == ["orch", ""]


def test_settings_trials_and_errors_need_no_torch_no_ray_and_no_pyarrow():
    program = """
import orch
orch.make_trial("modular_addition", "rnn"), orch.Cell, orch.Scale, orch.OrchError, orch.setting, orch.load
"""
    assert modules_imported(program, {"torch", "ray", "pyarrow", "pandas", "matplotlib"}) == set()


def test_every_exported_name_resolves_and_is_completed_in_a_shell():
    assert set(orch.__all__) >= PROMISED
    for name in orch.__all__:
        assert getattr(orch, name) is not None
    assert set(orch.__all__) <= set(dir(orch))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'orch' has no attribute 'lode'"):
        _ = orch.lode


def test_type_checkers_see_the_same_names_from_the_same_modules():
    (block,) = [
        node for node in ast.parse(inspect.getsource(orch)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]  # fmt: skip
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == orch._HOMES
    assert {*seen, "__version__"} == set(orch.__all__)


@pytest.mark.thorough
def test_mypy_knows_the_exported_names_and_refuses_others(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import orch\nreveal_type(orch.load)\nreveal_type(orch.train)\norch.lode\n")
    mypy = [sys.executable, "-m", "mypy", str(program)]
    found = subprocess.run(mypy, capture_output=True, text=True, cwd=ROOT, check=False)
    load, train, lode = [line for line in found.stdout.splitlines() if "program.py" in line]
    assert "-> orch.analysis.study.Study" in load
    assert "-> orch.sweeps.result.Result" in train
    assert 'Module has no attribute "lode"' in lode


def test_the_examples_of_the_package_run():
    assert doctest.testmod(orch).failed == 0


def test_train_trains_a_trial_in_this_process_and_returns_its_result():
    few = {"validation_samples": 8, "test_samples": 8, "curve_lengths": (10,)}
    trial = orch.make_trial("modular_addition", "rnn", width=8, steps=2, eval_every=1, test_length=20, **few)
    result = orch.train(trial)
    assert isinstance(result, orch.Result)
    assert (result.trial, result.steps, set(result.test_accuracy)) == (trial, 2, {10, 20})
