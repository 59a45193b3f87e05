"""Hours of one A100 for the whole paper, factor by factor, and how they depend on what is assumed. Nothing is trained.

The arithmetic is that of `orch plan all --scale paper` (orchestrator/planning/step_time.py). Factors are added one
after the other: packs of the trials of one cell, packs across cells as the planner makes them, recorded steps, and
kernels for GPUs.

Usage: python benchmarks/paper_hours.py
"""

import dataclasses
import os
from collections import defaultdict
from collections.abc import Callable, Iterable

from orch.models.kernel import PLAIN, TRITON
from orch.planning import step_time
from orch.planning.estimate import Estimator
from orch.planning.pack_size import pack_size
from orch.planning.packs import packed
from orch.planning.plan import Plan, PlannedTrial, make_plan, shared_out
from orch.sweeps.trial import Trial

DEVICE, NUM_DEVICES = "A100 40 GB", 8
FAMILIES = {
    "bilinear": ("bilinear",),
    "block diagonal": ("block_diagonal",),
    "rotation": ("rotation",),
    "factored": ("factored",),
    "LSTM, RNN": ("lstm", "rnn"),
    "Mamba": ("mamba",),
    "transformer": ("transformer",),
}
Hours = dict[str, float]


def hours(planned: list[PlannedTrial]) -> Hours:
    found = {
        family: sum(each.seconds for each in planned if each.trial.model.name in names) / 3600
        for family, names in FAMILIES.items()
    }
    return found | {"total": sum(found.values())}


def within_cells(plan: Plan) -> list[PlannedTrial]:
    """Pack trials that differ in learning rate and seeds only."""
    kinds: dict[Trial, list[Trial]] = defaultdict(list)
    for each in plan.trials:
        kinds[each.trial.stackable()].append(each.trial)
    packs = []
    for kind, members in kinds.items():
        size = pack_size(kind, len(members), DEVICE)
        packs += [members[start : start + size] for start in range(0, len(members), size)]
    return shared_out(plan.trials, packs, plan.estimator.estimate)


def with_factors(kernel: str, captured: bool, pack: Callable[[Plan], list[PlannedTrial]]) -> Hours:
    """Return the hours with kernels of this name, where a model has them."""
    os.environ["ORCH_CAPTURE"] = "on" if captured else "off"
    step_time.planned_kernel = lambda model, device="cpu": kernel if kernel in model.launches else PLAIN
    plan = make_plan(["all"], "paper", [], None, DEVICE)
    return hours(pack(dataclasses.replace(plan, estimator=Estimator(device=DEVICE))))


FACTORS: dict[str, tuple[str, bool, Callable[[Plan], list[PlannedTrial]]]] = {
    "each alone": (PLAIN, False, lambda plan: packed(plan, 1).trials),
    "packs": (PLAIN, False, within_cells),
    "across cells": (PLAIN, False, lambda plan: packed(plan).trials),
    "recorded": (PLAIN, True, lambda plan: packed(plan).trials),
    "kernels": (TRITON, True, lambda plan: packed(plan).trials),
}
A100 = step_time.A100
OTHERWISE = {
    "launches take twice as long": {
        "seconds_per_launch": 2 * A100.seconds_per_launch,
        "host_seconds_per_launch": 2 * A100.host_seconds_per_launch,
        "seconds_per_replay": 2 * A100.seconds_per_replay,
    },
    "half the bandwidth": {
        "bytes_per_second": A100.bytes_per_second / 2,
        "cached_bytes_per_second": A100.cached_bytes_per_second / 2,
    },
    "half the operations": {"operations_per_second": A100.operations_per_second / 2},
    "a cache of 10 MB": {"cache": 10e6},
}


def row(name: str, numbers: Iterable[float]) -> str:
    return " | ".join([f"| {name}", *(f"{number:.3g}" for number in numbers), ""]).rstrip()


def head(name: str) -> str:
    return f"| {name} | {' | '.join(FACTORS)} |\n|{' --- |' * (1 + len(FACTORS))}"


def main() -> None:
    print(head(f"hours of one {DEVICE}"))
    columns = [with_factors(*factor) for factor in FACTORS.values()]
    for family in columns[0]:
        print(row(family, (column[family] for column in columns)))
    print(row(f"on {NUM_DEVICES} of them", (column["total"] / NUM_DEVICES for column in columns)))
    print(f"\n{head('total, if')}")
    for name, change in OTHERWISE.items():
        step_time.A100 = dataclasses.replace(A100, **change)
        print(row(name, (with_factors(*factor)["total"] for factor in FACTORS.values())))


if __name__ == "__main__":
    main()
