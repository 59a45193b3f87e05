"""The code of live objects: a script's classes and functions become a file that runs without the script."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orch.core.errors import OrchError
from orch.running.requests import Request
from orch.store import Store
from orch.sweeps.grid import grid
from orch.sweeps.scales import LAPTOP
from orch.sweeps.selection import Results
from orch.usercode.code import UserCode
from orch.usercode.live_code import live_code
from orch.usercode.loading import load
from tests.command_line import orch

ROOT = Path(__file__).parents[2]

SCRIPT = '''
from __future__ import annotations

import concurrent.futures
import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, sigmoid
from helpers import double

import orch
from orch.notebook.sweep import define

TABLE = np.arange(6).reshape(2, 3)
GAINS = torch.tensor([1.0, 2.0])
LIMIT = float("inf")


@functools.cache
def helper(x: int) -> int:
    return even(x - 1) if x > 0 else int(TABLE[0, 0])


def even(x):
    return helper(x - 1) if x > 0 else 1


class Base(nn.Module):
    depth = math.floor(1.5)


class Tiny(Base):
    """Averages embeddings."""

    def __init__(self, vocabulary, width=8, gain=1.0):
        super().__init__()
        self.gain = double(helper(3)) + gain
        self.kind = concurrent.futures.Future
        self.embedding = nn.Embedding(vocabulary, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens).cumsum(1) * GAINS[0] * self.gain
        return self.out(F.relu(sigmoid(x)) if LIMIT > 3 else x)


@orch.task(inputs=2, states=2)
def parity(state, symbol):
    return (state + symbol) % 2


def states(size):
    return size


def last(state, symbol, size=3):
    return symbol % size


Last = orch.task(inputs=3, states=states)(last)
Renamed = orch.model(Tiny, name="renamed", title="Another tiny one")


@orch.model
class Decorated(Tiny):
    pass


def unused():
    return undefined


def code():
    models = ["lstm", Tiny, Renamed(gain=2.0), Decorated]
    return define(models=models, tasks=[parity, Last(size=4)], seeds=1, learning_rates=1e-3, width=8, name="mine").code
'''


@pytest.fixture
def code_of(tmp_path, monkeypatch):
    """Return a function that imports a script from a new folder, as a notebook imports a file next to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helpers.py").write_text("FACTOR = 2\n\n\ndef double(x):\n    return FACTOR * x\n")
    imported = ["helpers"]

    def code(text: str = SCRIPT) -> Any:
        imported.append(f"script_{len(imported)}")
        (tmp_path / f"{imported[-1]}.py").write_text(text)
        return importlib.import_module(imported[-1]).code()

    yield code
    for name in imported:
        sys.modules.pop(name, None)


def test_the_code_of_a_script_has_all_that_its_models_and_tasks_use_and_nothing_else(code_of):
    text = code_of()
    loaded = load(UserCode((("mine.py", text),)))
    assert loaded.models.keys() == {"tiny", "renamed", "decorated"}
    assert loaded.tasks.keys() == {"parity", "last"}
    assert loaded.models["renamed"].title == "Another tiny one"
    module = loaded.models["tiny"]().make_module(5)
    assert module.gain == 2 * 1 + 1.0
    assert module.depth == 1
    assert loaded.tasks["last"](size=4).num_classes == 4
    assert "unused" not in text
    assert "script_1" not in text


def test_the_present_value_of_a_constant_travels_and_changes_the_model(code_of):
    before = load(UserCode((("mine.py", code_of()),)))
    text = code_of(SCRIPT.replace("def code():", "LIMIT = 2.0\n\n\ndef code():"))
    assert "LIMIT = 2.0" in text
    after = load(UserCode((("mine.py", text),)))
    assert before.models["tiny"].revision != after.models["tiny"].revision


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('LIMIT = float("inf")', "LIMIT = object()", "LIMIT is an object, which cannot be sent to workers"),
        (
            "from helpers import double",
            "import helpers\n\ndouble = helpers",
            "double is a file of yours that would not be sent to the workers",
        ),
        ("double(helper(3))", "missing(helper(3))", "Tiny uses missing, which is not defined: define it first"),
        ("states=states", "states=lambda size: size", "a lambda has no name by which workers could find it"),
        ("Last(size=4)", "last", "last is a plain function: put @orch.task(inputs=…, states=…) above it"),
        ('name="mine"', 'name="main"', "there is a built-in sweep main: choose another name"),
        ('name="mine"', 'name="my study"', "'my study' is no name for a sweep"),
        ("seeds=1", "seeds=0", "seeds range(0, 0) are not seeds"),
        ("seeds=1", "sedes=1", "there is no setting 'sedes': did you mean"),
        ('"lstm"', '"lsmt"', "there is no model 'lsmt': did you mean 'lstm'?"),
    ],
)
def test_what_cannot_travel_or_does_not_exist_is_named_in_one_sentence(code_of, old, new, problem):
    assert old in SCRIPT
    with pytest.raises(OrchError) as error:
        code_of(SCRIPT.replace(old, new))
    assert problem in str(error.value)


def test_code_typed_into_a_prompt_is_refused_in_one_sentence():
    program = """
import orch
from orch.notebook.sweep import define

@orch.task(inputs=2, states=2)
def parity(state, symbol):
    return (state + symbol) % 2

try:
    define(models=["lstm"], tasks=[parity], name="mine")
except orch.OrchError as error:
    print(error)
"""
    command = [sys.executable, "-c", program]
    environment = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("the text of parity is not known, because it was typed into a plain Python prompt")


ANNOTATED = """
{future}
from typing import TYPE_CHECKING

from torch import nn
from orch.sweeps.grid import grid
from orch.usercode.live_code import live_code

if TYPE_CHECKING:
    from torch import Tensor


class Tiny(nn.Module):
    scale: "batch time"

    def __init__(self, vocabulary, width: int = 8):
        super().__init__()
        self.embedding, self.out = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)

    def forward(self, tokens: {tensor}) -> {tensor}:
        return self.out(self.embedding(tokens).cumsum(1))


def code():
    return live_code("mine", "Mine", grid(models=[Tiny], tasks=["modular_addition"]))
"""


@pytest.mark.parametrize(("future", "tensor"), [("from __future__ import annotations", "Tensor"), ("", '"Tensor"')])
def test_names_that_only_annotations_mention_need_not_exist(code_of, future, tensor):
    loaded = load(code_of(ANNOTATED.format(future=future, tensor=tensor)))
    assert loaded.models["tiny"]().make_module(5)


TABLES = """
from collections import defaultdict

from torch import nn

import orch
from orch.models.config import Look
from orch.usercode.live_code import live_code

GAINS = defaultdict(float)


class Tiny(nn.Module):
    def __init__(self, vocabulary, width: int = 8):
        super().__init__()
        self.gain = GAINS["tiny"]


Shown = orch.model(Tiny, looks={"": Look("C0", "o")})


def code():
    return live_code("mine", "Mine", orch.grid(models=[Shown], tasks=["modular_addition"]))
"""


def test_what_would_travel_as_something_else_is_refused(code_of):
    with pytest.raises(OrchError) as error:
        code_of(TABLES)
    assert "GAINS is a defaultdict, which cannot be sent to workers" in str(error.value)
    assert "looks of Tiny is not plain: write @orch.model(looks=…) above the class instead" in str(error.value)


def test_a_grid_of_built_in_models_needs_no_definitions():
    made = grid(models=["lstm", {"name": "block_diagonal", "block_size": 2}], tasks=["modular_addition"], steps=10)
    code = live_code("plain", "A plain one", made)
    assert load(code).models == {}
    assert code.name == "plain"


def test_the_code_in_the_documentation_defines_the_study_that_it_describes(code_of):
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    program = "\n".join(blocks).replace("study = orch.sweep(", "study = define(")
    assert "study = define(" in program
    program = f"from orch.notebook.sweep import define\n{program}\n\ndef code():\n    return study, cells, walk\n"
    study, cells, walk = code_of(program)
    assert study.plan().counts["to_do"] == 2 * 2 * 3
    assert sum(len(cell.trials) for cell in cells(LAPTOP, Results.none())) == 2 * 2 * 3
    assert walk(size=7).num_classes == 7


def test_the_study_in_the_readme_is_planned_and_its_train_command_runs(tmp_path):
    text = (ROOT / "README.md").read_text()
    file = tmp_path / "my_study.py"
    file.write_text(next(each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "orch.grid" in each))
    plan = Request.read([str(file)], None, (), Store.open(tmp_path / "runs")).plan(None)
    assert plan.counts["to_do"] == 12, "as its comment says"
    (line,) = re.findall(r"^\$ (orch train my_study.py.*?) +#", text, re.MULTILINE)
    words = [str(file) if word == file.name else word for word in line.split()[1:]]
    shown = orch(*words[: words.index("--steps")], "--steps", 2, "--test-length", 20).stdout
    assert "sums on parity" in shown
