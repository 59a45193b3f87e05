"""On real Ray, user code that changes its process in ways that the probe does not see changes no other trial."""

import json

from orch.sweeps.trial import Trial
from orch.training.train import train

FILE = '''\
import os
import sys

import torch
from torch import nn

import orch


@orch.model
class Poisonous(nn.Module):
    """It behaves while it is tried, as a change in a late step or in a rare branch would."""

    def __init__(self, vocabulary, width=8, poison=""):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.poison = poison

    def forward(self, tokens):
        if "probe" not in sys.argv[0]:
            if self.poison == "dtype":
                torch.set_default_dtype(torch.float64)
            elif self.poison == "function":
                torch.tanh = torch.sigmoid
            elif self.poison == "environment":
                os.environ["ORCH_KERNEL"] = "plain"
        h = self.embedding.weight.new_zeros(len(tokens), self.head.in_features)
        states = []
        for token in tokens.unbind(1):
            h = torch.relu(0.5 * h + self.embedding.weight[token])
            states.append(h)
        return self.head(torch.stack(states, 1))


def cells(scale, results):
    task = scale.task("modular_addition", 2)
    for poison in ("", "dtype", "function", "environment"):
        rates = (1e-2, 3e-3, 1e-3) if poison == "dtype" else (1e-2,)
        yield scale.cell(task, Poisonous(width=8, poison=poison), learning_rates=rates)
    yield scale.cell(task, scale.model("rnn"), learning_rates=(1e-2, 3e-3))
    yield scale.cell(task, scale.model("bilinear"), learning_rates=(1e-2,))
'''


def test_poisonous_trials_change_no_other_trial_of_their_worker_and_are_named(sweeps):
    (sweeps.folder / "mine.py").write_text(FILE)
    done = sweeps.run("sweep", "mine.py", "--scale", "smoke", "--cpus", "1")
    assert "9 trials finished" in done.stdout
    for change in (
        "changes torch's default dtype: give dtype= where a tensor is made instead",
        "replaces torch.tanh, which all code shares: call a function of your own instead",
        "changes os.environ: set the variable before orch is started",
    ):
        assert f"warning: model poisonous {change}" in done.stderr
    assert "each of these trials had a process of its own: no other trial was affected" in done.stderr

    pids, built_in_pids = [], set()
    rows = {row["trial_id"]: row for row in sweeps.store.read("trials").to_pylist()}
    for attempt in sweeps.attempts("end"):
        if rows[attempt["trial_id"]]["model"] == "poisonous":
            pids.append((attempt["pid"], attempt["outcome"]))
        else:
            built_in_pids.add(attempt["pid"])
    assert len(built_in_pids) <= 2, "a worker process is replaced only after the attempt at the pack"
    assert not built_in_pids & {pid for pid, _ in pids}
    assert any(outcome == "interrupted" for _, outcome in pids), "the trials of a pack were trained again, one by one"

    for row in rows.values():
        if row["model"] != "poisonous":
            alone = train(Trial.from_dict(json.loads(row["config"])))
            assert row["validation_loss"] == alone.curve[-1].validation_loss, row["model"]
            assert {point["length"]: point["accuracy"] for point in row["length_curve"]} == alone.test_accuracy
