"""Real searches on real Ray: killed and repeated, pruned, and free where the store has the trials."""

import json
import signal
from collections import Counter
from pathlib import Path

from safetensors.numpy import load

from orch.store import Store
from tests.engine.conftest import Sweeps, wait_for
from tests.engine.test_kills import rows_on_disk

TINY = [
    *("search", "--model", "bilinear", "--task", "modular_addition", "--modulus", "2", "--steps", "180"),
    *("--eval-every", "20", "--validation-samples", "64", "--test-samples", "32", "--test-length", "40"),
    *("--curve-lengths", "10,40", "--metric", "accuracy_10", "--seeds", "2"),
]
SMALLEST = [
    *TINY,
    *("--learning-rate", "0.01", "--vary", "width=4,8,12,16,24", "--smallest", "width", "--at-least", "0.5"),
    *("--checkpoint-seconds", "0.1", "--json"),
]


def resumed(store: Store) -> set[str]:
    """Return the trials that workers resumed from a checkpoint, according to their logs."""
    found: set[str] = set()
    for path in store.list_files("logs"):
        if "worker-" in path:
            lines = map(json.loads, (store.get_bytes(path) or b"").decode().splitlines())
            found |= {trial_id for line in lines for trial_id in line.get("resumed", ())}
    return found


def under_way(sweeps: Sweeps) -> set[str]:
    """Return the trials that have a checkpoint and are still running. A pruned trial has a checkpoint too."""
    checkpointed = {Path(path).stem for path in sweeps.store.list_files("checkpoints")}
    return checkpointed - {row["trial_id"] for row in sweeps.attempts("end")}


def has_width(width: int, checkpoint: bytes | None) -> bool:
    """Return whether a checkpoint is one of a model of this width."""
    return checkpoint is not None and any(width in tensor.shape for tensor in load(checkpoint).values())


def test_a_search_killed_halfway_completes_when_the_command_is_repeated(sweeps):
    # The point of width 12 is too slow to end before the kill, or in the moment that its worker outlives the driver.
    process = sweeps.start(*SMALLEST, faults=[["slow 1", {"width": 12}], ["slow 0.02", {}]])
    wait_for(lambda: sweeps.store.list_json("searches") and sweeps.store.done())
    wait_for(lambda: any(has_width(12, sweeps.store.get_checkpoint(each)) for each in under_way(sweeps)))
    process.send_signal(signal.SIGKILL)
    process.wait()
    done_before = sweeps.store.done()
    (found,) = json.loads(sweeps.run(*SMALLEST).stdout)
    answer = found["answer"]
    assert answer["settled"]
    assert not found["under_way"]
    values = {point["params"]["width"]: point["value"] for point in found["points"]}
    assert values[answer["value"]] >= 0.5
    assert all(value is None or value < 0.5 for width, value in values.items() if width < answer["value"])
    assert answer["training_steps"]["search"] == found["training_steps"] > 0
    store = sweeps.store
    assert done_before <= store.done()
    assert set(rows_on_disk(sweeps).values()) == {1}, "a finished trial was trained again"
    assert resumed(store), "nothing continued from its checkpoint"
    finished = {row["trial_id"]: row["finished_at"] for row in store.read("trials").to_pylist()}
    late = [row for row in sweeps.attempts("start") if row["at"] > finished.get(row["trial_id"], row["at"])]
    assert not late

    before = len(sweeps.attempts("start"))
    assert json.loads(sweeps.run(*SMALLEST).stdout) == [found]
    assert len(sweeps.attempts("start")) == before, "a search that is complete costs nothing"
    assert json.loads(sweeps.run("search", "--show", found["search"][:6], "--json").stdout) == [found]


def test_a_pruned_point_leaves_no_result_and_a_trained_one_costs_nothing(sweeps):
    rates = ("--vary", "learning_rate=1e-9,1e-2,1e-1", "--cpus", "1", "--grace", "60", "--width", "16")
    (found,) = json.loads(sweeps.run(*TINY, *rates, "--json").stdout)
    states = {point["params"]["learning_rate"]: point for point in found["points"]}
    assert states[1e-2]["state"] == "finished", "the first point has nothing to be compared with"
    assert states[1e-9]["state"] == "pruned"
    pruned = set(states[1e-9]["steps"])
    store = sweeps.store
    assert set(states[1e-9]["steps"].values()) == {60}
    assert not pruned & store.done()
    ends = {row["trial_id"]: (row["outcome"], row["step"]) for row in sweeps.attempts("end")}
    assert {ends[trial_id] for trial_id in pruned} == {("pruned", 60)}
    assert all(store.get_checkpoint(trial_id) for trial_id in pruned)
    assert "no trial has failed" in sweeps.run("failures").stdout
    starts = Counter(row["trial_id"] for row in sweeps.attempts("start"))

    only = ("--vary", "learning_rate=1e-2,1e-9", "--objective", "median", "--grace", "0", "--width", "16")
    (again,) = json.loads(sweeps.run(*TINY, *only, "--json").stdout)
    spent = {point["params"]["learning_rate"]: point["spent"] for point in again["points"]}
    assert spent == {1e-2: 0, 1e-9: 2 * (180 - 60)}, "one has its result, the other continues from its checkpoints"
    more = Counter(row["trial_id"] for row in sweeps.attempts("start")) - starts
    assert set(more) == pruned
    sweeps.run("search", "--show", found["search"], "--figure", "history.svg")
    assert (sweeps.folder / "history.svg").read_bytes().startswith(b"<?xml")
