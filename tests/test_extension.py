"""Adding a model, a task or an experiment means adding its files; no other file changes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CONFIG = '''
"""Settings of a model that adds up embeddings."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import ModelConfig, Shape, Vocabulary
from orch.models.look import Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ModelConfig):
    name = "summing"
    revision = 1
    about = "adds up embeddings"
    title = "Sum of embeddings"
    family = "Sums"
    looks = {"": Look("#123456", "o")}
    small_settings = {"copies": 3}
    own_learning_rates = {"smoke": (5e-4,)}

    copies: int = setting(1, "number of sums")

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        return {"embedding": (vocabulary.size, self.width), "head.weight": (vocabulary.size, self.width)}
'''
NETWORK = '''
"""Sum of embeddings: logits = W sum_t E x_t."""

import torch
from torch import nn

from orch.models.network import PerTrial


class Sum(nn.Module):
    def __init__(self, config, vocabulary):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocabulary.size, config.width))
        self.head = nn.Linear(config.width, vocabulary.size, bias=False)

    def forward(self, tokens_BT, end_B):
        is_read_BT = torch.arange(tokens_BT.shape[1]) <= end_B[:, None]
        return self.head((self.embedding[tokens_BT] * is_read_BT[..., None]).sum(1))


class Network(PerTrial):
    @classmethod
    def skeleton(cls, config, vocabulary):
        return Sum(config, vocabulary)
'''
TASK = '''
"""Last symbol: the target is the last input."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.tasks.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class LastSymbol(Task):
    name = "last_symbol"
    revision = 1
    modulus_titles = {None: "Last of {} symbols"}

    modulus: int = setting(5, "number of symbols")

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(self.modulus),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return symbol

    def target(self, state: int) -> int:
        return state
'''
EXPERIMENT = '''
"""Two models on the last symbol."""

TITLE = "The last symbol"
REPRODUCES = "nothing"
IN_ALL = False


def cells(scale, results):
    for name in ("summing", "rnn"):
        yield scale.cell(scale.task("last_symbol", 3), scale.model(name))
'''
NAMES = """
import json
from orch.analysis.board import Board
from orch.analysis.figures.line import make_line
from orch.analysis.figures.plotted_cell import plotted_cells
from orch.sweeps.catalogue import resolve
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from tests.analysis.invented import invented_row
from tests.small import MODELS, small_trial

cells = list(SWEEPS["last-symbol"].cells(SMOKE, Results.none()))
finished = {trial.id: invented_row(trial.id, trial.learning_rate) for cell in cells for trial in cell.trials}
found = plotted_cells(map(Board(SMOKE, finished).join, cells))
lines = [make_line(entry, [1.0], [[0.5]]) for entry in found]
print(json.dumps({
    "labels": [entry.label for entry in found],
    "colours": [entry.look.colour for entry in found],
    "families": [line.family for line in lines],
    "task": found[0].task.title_of(3),
    "small": [name for name in MODELS if small_trial(name, "last_symbol").check()],
    "copies": small_trial("summing").model.copies,
    "rates": sorted(cells[0].learning_rates),
    "all": resolve(["all"]),
}))
"""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run Python on a copy of the project that has one more model, task and experiment."""
    root = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__", "bundled")
    package = root / "src" / "orch"
    shutil.copytree(ROOT / "src" / "orch", package, ignore=ignored)  # links are followed
    shutil.copytree(ROOT / "tests", root / "tests", ignore=ignored)
    files = {
        "models/summing/__init__.py": "",
        "models/summing/config.py": CONFIG,
        "models/summing/network.py": NETWORK,
        "tasks/last_symbol.py": TASK,
        "sweeps/experiments/last_symbol.py": EXPERIMENT,
    }
    for path, text in files.items():
        (package / path).parent.mkdir(exist_ok=True)
        (package / path).write_text(text)
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "ORCH_STORE": str(root / "runs")}

    def run(*arguments: str) -> str:
        done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_listings_show_the_added_model_task_and_experiment(run: Run) -> None:
    listed = {name: json.loads(run("-m", "orch", name, "--json")) for name in ("models", "tasks", "sweeps")}
    assert _row(listed["models"], "model", "summing")["about"] == "adds up embeddings"
    assert _row(listed["tasks"], "task", "last_symbol")["classes"] == 5
    assert _row(listed["sweeps"], "sweep", "last-symbol")["smoke"]["trials"] == 2


def _row(rows: list[dict[str, object]], column: str, value: str) -> dict[str, object]:
    [row] = [row for row in rows if row[column] == value]
    return row


def test_the_added_experiment_is_planned(run: Run) -> None:
    assert "last-symbol" in run("-m", "orch", "plan", "last-symbol", "--scale", "smoke")


def test_the_added_model_trains_on_the_added_task(run: Run) -> None:
    kind = ("--model", "summing", "--task", "last_symbol", "--modulus", "3", "--width", "8", "--copies", "2")
    short = ("--steps", "20", "--eval-every", "10", "--test-length", "20", "--curve-lengths", "20")
    assert json.loads(run("-m", "orch", "train", *kind, *short, "--json"))["steps"] == 20


def test_tables_figures_and_tests_derive_from_the_added_files(run: Run) -> None:
    found = json.loads(run("-c", NAMES))
    assert found["labels"] == ["Sum of embeddings", "RNN"]
    assert found["colours"] == ["#123456", "#E69F00"]
    assert found["families"] == ["Sums", "Other models"]
    assert found["task"] == "Last of 3 symbols"
    assert "summing" in found["small"]
    assert found["copies"] == 3
    assert found["rates"] == [5e-4]
    assert "last-symbol" not in found["all"]
    assert "main" in found["all"]
