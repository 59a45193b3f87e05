"""Modules of a user's own on real Ray: in a pack, with the numbers of a trial alone; and what is wrong with them."""

import json

from orch.running.requests import find_trial
from orch.training.train import train

FILE = '''\
import torch
from torch import nn

import orch

TITLE = "Modules of my own"


@orch.model
class Gated(nn.Module):
    """A gated recurrence."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gate, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, ends):
        x = self.embedding.weight
        gate, value = torch.tanh(self.gate(x)), self.value(x)
        h = torch.zeros(len(tokens), x.shape[1])
        for position, token in enumerate(tokens.unbind(1)):
            f = gate[token]
            h = torch.where((position <= ends)[:, None], f * h + (1 - f.abs()) * value[token], h)
        return self.head(h)


@orch.model
class Noisy(nn.Module):
    """An LSTM with BatchNorm and dropout."""

    def __init__(self, vocabulary, width=16, dropout=0.1):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(vocabulary, width), nn.BatchNorm1d(width)
        self.lstm, self.dropout = nn.LSTM(width, width, batch_first=True), nn.Dropout(dropout)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.norm(self.embedding(tokens).transpose(1, 2)).transpose(1, 2)
        return self.head(self.dropout(self.lstm(x)[0]))


@orch.model
class Late(Noisy.wrapped):
    """It works for a while."""

    def __init__(self, vocabulary, width=16):
        super().__init__(vocabulary, width)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens):
        self.steps += self.training
        if self.steps > 16:
            raise ValueError("too late")
        return super().forward(tokens)


def cells(scale, results):
    task = scale.task("modular_addition", 2)
    yield scale.cell(task, Gated(width=16), learning_rates=(1e-2, 3e-3, 1e-3))
    yield scale.cell(task, Noisy(width=16))
    yield scale.cell(task, Late(width=16))
'''


def test_own_modules_are_tried_packed_and_trained_to_the_numbers_of_a_trial_alone(sweeps):
    path = sweeps.folder / "mine.py"
    path.write_text(FILE)
    which = ("--scale", "smoke", "--where", "model=gated,noisy")
    plan = json.loads(sweeps.run("plan", "mine.py", *which, "--json").stdout)
    assert {own["model"]: own["stacked"] for own in plan["own_models"]} == {"gated": True, "noisy": False}
    assert (plan["to_do"], plan["packs"]) == (4, 3), "one of each model runs first and alone"
    assert "4 trials finished" in sweeps.run("sweep", "mine.py", *which, "--cpus", "1").stdout
    path.unlink()
    for row in sweeps.store.read("trials").to_pylist():
        alone = train(find_trial(sweeps.store, row["trial_id"]))
        assert row["validation_loss"] == alone.curve[-1].validation_loss, row["model"]
        assert {point["length"]: point["accuracy"] for point in row["length_curve"]} == alone.test_accuracy


def test_what_is_wrong_is_said_before_anything_is_started(sweeps):
    (sweeps.folder / "mine.py").write_text(FILE.replace("return self.head(h)", "return h"))
    done = sweeps.run("sweep", "mine.py", "--scale", "smoke", expect=2)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: mine.py, line 19: model gated returns the shape (64, 16): return logits of shape")
    assert "running on" not in done.stderr
    assert not (sweeps.folder / "runs").exists()


def test_an_error_of_a_users_code_in_a_later_step_is_tried_once(sweeps):
    (sweeps.folder / "mine.py").write_text(FILE)
    sweeps.run("sweep", "mine.py", "--scale", "smoke", "--where", "model=late", "--cpus", "1", expect=3)
    (end,) = sweeps.attempts("end")
    assert (end["outcome"], end["error_type"]) == ("failed", "ValueError")
