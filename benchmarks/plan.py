"""`orch plan` and `orch status` on more than 10,000 trials, 10,000 of them finished: wall clock of the process.

The trials are the main table's at paper scale, with thirteen seeds instead of three; the store is compacted. Status
reads a bucket, first with nothing cached on this machine, then again.

Usage: python benchmarks/plan.py [REPETITIONS]
"""

import dataclasses
import datetime
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from s3 import s3_server

from orch.planning.plan import make_plan
from orch.running.requests import Request, record
from orch.store import Store, trial_row
from orch.sweeps import scales
from orch.sweeps.expansion import expand
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial

NUM_FINISHED = 10_000
WIDER = """
import dataclasses, sys
from orch.sweeps import scales
from orch.cli import main
scales.SCALES["paper"] = dataclasses.replace(scales.PAPER, seeds=tuple(range(13)))
main(sys.argv[1:])
"""
PLAN = ["plan", "main", "--scale", "paper", "--store"]


WIDE = dataclasses.replace(scales.PAPER, seeds=tuple(range(13)))


def fill(location: str) -> None:
    trials = [each.trial for each in expand(["main"], WIDE, Results.none()).trials.values()]
    random.Random(0).shuffle(trials)
    store = Store.open(location)
    for start in range(0, NUM_FINISHED, 100):
        chosen = trials[start : start + 100]
        store.write("trials", [finished(trial) for trial in chosen])
        store.write("attempts", [row for trial in chosen for row in attempts(trial)])
    store.compact(min_parts=2)


def finished(trial: Trial) -> dict:
    scores = dict.fromkeys(trial.tested_lengths, 0.5)
    curve = (CurvePoint(step=5000, train_loss=0.1, validation_loss=0.1, validation_accuracy=0.9, seconds=60.0),)
    result = Result(trial, StopReason.BUDGET, 5000, 60.0, curve, scores, scores, parameters={})
    return trial_row(result, {"attempt_id": trial.id, "device": "cpu"})


def attempts(trial: Trial) -> list[dict]:
    row = {"attempt_id": trial.id, "trial_id": trial.id, "at": datetime.datetime.now(datetime.UTC)}
    return [row | {"event": "start"}, row | {"event": "end", "outcome": "finished"}]


def seconds(*arguments: str) -> tuple[float, str]:
    started = time.perf_counter()
    found = subprocess.run([sys.executable, "-c", WIDER, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - started, found.stdout


def main(repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(f"{folder}/runs")
        sides = {
            "orch --help": ["--help"],
            "orch plan, no store": [*PLAN, f"{folder}/none"],
            f"orch plan, {NUM_FINISHED:,} finished": [*PLAN, f"{folder}/runs"],
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        outputs = {}
        for _ in range(repetitions):
            for name, arguments in sides.items():
                taken, outputs[name] = seconds(*arguments)
                times[name].append(taken)
    with tempfile.TemporaryDirectory() as cache, s3_server(cache) as location:
        fill(location)
        scales.SCALES["paper"] = WIDE
        record(Store.open(location), Request(("main",), "paper"), make_plan(["main"], "paper", [], None))
        for _ in range(repetitions):
            for part in Path(cache).rglob("*.parquet"):
                part.unlink()
            for name in ("orch status, s3, cold", "orch status, s3, again"):
                taken, outputs[name] = seconds("status", "--store", location)
                times.setdefault(name, []).append(taken)
    name = f"orch plan, {NUM_FINISHED:,} finished"
    print(next(line for line in outputs[name].splitlines() if " done, " in line))
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:28}{median:7.2f} s   {median / statistics.median(times['orch --help']):5.1f} x help")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
