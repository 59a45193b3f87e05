"""A user's sweep on real Ray: its code is sent to the workers, and the store needs the file no more."""

import json
import shutil
from pathlib import Path

from click.testing import CliRunner

from orch.cli import main
from orch.running.requests import find_trial
from orch.training.train import train

EXAMPLES = Path(__file__).parents[2] / "examples"
PART = ("--scale", "smoke", "--where", "modulus=2,task=resettable_addition", "--where", "model=gated,lstm")


def orch(sweeps, *arguments):
    """Run a command that needs no Ray in this process."""
    result = CliRunner().invoke(main, [*arguments, "--store", sweeps.location])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_worked_example_runs_and_everything_works_without_its_files(sweeps):
    mine = sweeps.folder / "mine"
    shutil.copytree(EXAMPLES, mine, ignore=shutil.ignore_patterns("__pycache__"))
    shown = sweeps.run("sweep", "mine/gated_sweep.py", *PART).stdout
    assert "3 trials finished" in shown
    assert "gated (signed gates)" in shown
    rows = {(row["model"], row["gate"]): row for row in sweeps.store.read("trials").to_pylist()}
    assert rows.keys() == {("gated", "positive"), ("gated", "signed"), ("lstm", None)}
    plan = json.loads(orch(sweeps, "plan", str(mine / "gated_sweep.py"), *PART, "--json"))
    assert (plan["done"], plan["to_do"]) == (3, 0)

    network = mine / "gated_network.py"
    network.write_text(network.read_text().replace("torch.tanh", "nn.functional.hardtanh"))
    plan = json.loads(orch(sweeps, "plan", str(mine / "gated_sweep.py"), *PART, "--json"))
    assert (plan["done"], plan["to_do"]) == (1, 2), "only the edited model has trials to do"

    shutil.rmtree(mine)
    (status,) = json.loads(orch(sweeps, "status", "--json"))["sweeps"]
    assert (status["name"], status["done"]) == ("gated-sweep", 3)
    assert status["where"] == "modulus=2,task=resettable_addition model=gated,lstm"
    assert "1 result withdrawn" in orch(
        sweeps, "discard", "--where", "model=gated,gate=signed", "--reason", "a test", "--yes"
    )
    shown = sweeps.run("resume", "gated-sweep").stdout
    assert "1 trial finished" in shown
    assert "gated (signed gates)" in shown, "resume ends with the table, like sweep"
    before = rows["gated", "signed"]
    after = next(row for row in sweeps.store.read("trials").to_pylist() if row["trial_id"] == before["trial_id"])
    assert after["attempt_id"] != before["attempt_id"]
    assert after["validation_loss"] == before["validation_loss"], "it was trained with the code as it was then"
    here = train(find_trial(sweeps.store, before["trial_id"]))
    assert here.curve[-1].validation_loss == before["validation_loss"]


def test_a_search_over_a_setting_of_ones_own_model_is_shown_without_its_file(sweeps):
    mine = sweeps.folder / "mine"
    shutil.copytree(EXAMPLES, mine, ignore=shutil.ignore_patterns("__pycache__"))
    sizes = ["--width", "16", "--steps", "40", "--eval-every", "10", "--test-samples", "32", "--test-length", "200"]
    sweeps.run(
        *("search", "mine/gated_sweep.py", "--model", "gated", "--task", "resettable_addition", "--modulus", "2"),
        *(*sizes, "--curve-lengths", "10,100", "--seeds", "1", "--vary", "gate=positive,signed", "--cpus", "1"),
    )
    shutil.rmtree(mine)
    [search_id] = [path.name for path in (sweeps.folder / "runs" / "searches").iterdir()]
    [shown] = json.loads(orch(sweeps, "search", "--show", search_id, "--json"))
    assert {(point["params"]["gate"], point["state"]) for point in shown["points"]} == {
        ("positive", "finished"),
        ("signed", "finished"),
    }
