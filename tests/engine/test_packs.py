"""Packs on real Ray: a worker that holds nine trials is killed, and every trial still has its one row."""

import json
import os
import signal
from collections import Counter

from orch.sweeps.trial import Trial
from orch.training.train import train
from tests.engine.conftest import wait_for

TEN = """
from orch.sweeps.cell import Cell

TITLE = "Ten trials alike in all but learning rate and seed"

def cells(scale, results):
    task, model = scale.task("modular_addition", 2), scale.model("rnn")
    pairs = [(rate, seed) for rate in (1e-2, 1e-3) for seed in range(5)]
    yield Cell([scale.trial(task, model, learning_rate=rate, seed=seed, stop_loss=1e-9) for rate, seed in pairs])
"""


def test_a_worker_killed_with_a_pack_of_nine_leaves_nine_rows_each_once_and_equal_to_solo_runs(sweeps):
    path = sweeps.folder / "ten.py"
    path.write_text(TEN)
    process = sweeps.start(
        "sweep", str(path), "--scale", "smoke", "--cpus", "1", "--checkpoint-seconds", "0.1", faults=[["slow 1.5", {}]]
    )
    checkpoints = sweeps.folder / "runs" / "checkpoints"
    wait_for(lambda: len(list(checkpoints.glob("*.safetensors"))) >= 9)
    nine = Counter(row["pid"] for row in sweeps.attempts("start")).most_common(1)[0]
    assert nine[1] >= 9, "one worker holds the pack"
    os.kill(nine[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    rows = sweeps.store.read("trials").to_pylist()
    assert len({row["trial_id"] for row in rows}) == len(rows) == 10
    outcomes = Counter(row["outcome"] for row in sweeps.attempts("end"))
    assert outcomes == {"finished": 10, "lost": 9}
    logs = "".join(file.read_text() for file in (sweeps.folder / "runs" / "logs").glob("worker-*"))
    assert any(len(json.loads(line).get("resumed", [])) == 9 for line in logs.splitlines())
    for row in rows[:3]:
        expected = train(Trial.from_dict(json.loads(row["config"])))
        assert row["validation_loss"] == expected.curve[-1].validation_loss
        assert {point["length"]: point["accuracy"] for point in row["length_curve"]} == expected.test_accuracy
