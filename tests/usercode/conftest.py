"""Sweep files written by tests, each in a separate folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

SWEEP = '''\
"""For tests."""
from dataclasses import dataclass

from orch.models import ModelConfig
from orch.core.settings import setting
from orch.tasks import Task

TITLE = "Averages on copying"
DEPTH = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Averaging(ModelConfig):
    name = "averaging"
    about = "the mean of the embeddings"

    decay: float = setting(0.5, "weight of what was before")
    flavour: str = setting("plain", "which of two")

    def shapes(self, vocabulary):
        size = (vocabulary.size, self.width)
        return {"embedding": size, "head.weight": size, "head.bias": (vocabulary.size,)}

    def network(self):
        from .averaging import Network

        return Network


@dataclass(frozen=True, kw_only=True, slots=True)
class Last(Task):
    name = "last"

    modulus: int = setting(3, "number of symbols")
    patience: int = setting(0, "not used")

    @property
    def slots(self):
        return (range(self.modulus),)

    @property
    def initial(self):
        return 0

    def step(self, state, symbol):
        return symbol

    def target(self, state):
        return state


def cells(scale, results):
    for task in (Last(modulus=3), scale.task("modular_addition", 2)):
        yield scale.cell(task, Averaging(width=8))
        yield scale.cell(task, scale.model("rnn"))
'''

NETWORK = """\
import torch

from orch.models import network
from orch.models.network import uniform


class Network(network.Network):
    @classmethod
    def fresh(cls, config, vocabulary, generator):
        return {name: uniform(shape, 0.1, generator) for name, shape in config.shapes(vocabulary).items()}

    def forward(self, tokens_KBT, end_KB):
        x_KVH = torch.nn.functional.pad(self["embedding"], (0, 0, 0, 1))  # padding adds nothing
        h_KBH = torch.stack([x_VH[tokens_BT].mean(1) for x_VH, tokens_BT in zip(x_KVH, tokens_KBT)])
        return self.head(h_KBH)
"""


class Files:
    """The two files of a sweep, in one folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.sweep, self.network = folder / "my_sweep.py", folder / "averaging.py"
        self.sweep.write_text(SWEEP)
        self.network.write_text(NETWORK)

    @property
    def path(self) -> str:
        return str(self.sweep)

    def edit(self, old: str, new: str, path: Path | None = None) -> str:
        """Replace text in the sweep file (or another one), and return the path of the sweep file."""
        path = path or self.sweep
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return self.path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "mine").mkdir()
    return Files(tmp_path / "mine")


@pytest.fixture
def another(tmp_path: Path) -> Callable[[str], Files]:
    """Return a function that writes the same files to another folder."""

    def make(name: str) -> Files:
        (tmp_path / name).mkdir()
        return Files(tmp_path / name)

    return make
