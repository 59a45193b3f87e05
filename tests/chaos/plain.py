"""A driver and its worker in one plain process: the code that workers run, without Ray, at a fraction of its price.

Processes are forked from a server that has imported everything (`processes.Nursery`). What a fault changes in such a
process, a slow disk for example, is a function of `orders.conditions`, which is called before the work begins.
"""

import contextlib
import importlib
import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import torch

import orch.training.checkpoints
import orch.training.host_copy
import orch.training.train  # noqa: F401 — so that the server has it, and no process imports it again
from orch.core.errors import OrchError
from orch.planning.packs import make_packs
from orch.running.failures import TrialError
from orch.running.lease import Lease
from orch.running.units import Unit
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest
from orch.store import Store
from orch.store.attempts import make_attempt_id
from tests.chaos.planned import planned, write_expected
from tests.unit_requests import unit_request

FINISHED = "finished"
"""The first word of the line in which a process acknowledges a result: its trial and attempt follow."""


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a plain process is told to do."""

    location: str
    output: str
    """The file that its stdout and stderr go to."""
    task: str = "sweep"
    seed: int = 0
    """Decides the order of the packs."""
    pack: int = 4
    step_seconds: float = 0.0
    """A pause after each stretch of training, in which nothing is computed but a fault may strike."""
    crash_at: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    conditions: tuple[tuple[str, dict[str, object]], ...] = ()
    """`module:function` and its arguments, called before the work begins."""


def run(orders: Orders) -> None:
    """Do as ordered. Errors that users would see are one line and exit code 2; any other error shows its traceback."""
    with open(orders.output, "a", buffering=1) as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    torch.set_num_threads(1)
    os.environ |= orders.environment
    os.environ.pop("ORCH_CRASH_AT", None)
    if orders.crash_at:
        os.environ["ORCH_CRASH_AT"] = orders.crash_at
    try:
        for place, arguments in orders.conditions:
            module, _, function = place.partition(":")
            getattr(importlib.import_module(module), function)(**arguments)
        TASKS[orders.task](orders)
    except (OrchError, TrialError) as error:
        print(f"error: {error.failure.message if isinstance(error, TrialError) else error}")
        if isinstance(error, TrialError) and not error.failure.store_lost:
            print(error.failure.trace)
        code = 2
    except KeyboardInterrupt:
        print("error: interrupted")
        code = 2
    except BaseException:
        traceback.print_exc()
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    os._exit(code)  # no thread of a library may hold up the end


def sweep(orders: Orders) -> None:
    """Run all trials that have no result, as a driver and its worker would together."""
    store = Store.open(orders.location)
    store.verify()
    stopping = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    turns = itertools.count()
    with Lease(store, "chaos") as lease:
        while not stopping and (units := _units(store, orders)):
            claimed = [unit for unit in units if lease.claim(unit.open_ids)][:1]
            if not claimed:
                time.sleep(0.05)
            for unit in claimed:
                _train(UnitRun(_request(unit, store, lease, next(turns))), orders, stopping)
                lease.release(unit.open_ids)
    store.compact(min_parts=8)


def _units(store: Store, orders: Orders) -> list[Unit]:
    done = store.done()
    left = [each for each in planned() if each.id not in done]
    units = [Unit(pack) for pack in make_packs(left, "cpu", orders.pack)]
    random.Random(orders.seed).shuffle(units)
    return units


def _train(run: UnitRun, orders: Orders, stopping: list[int]) -> None:
    while not run.done and not stopping:
        run.advance()
        for summary in run.take_finished():
            print(FINISHED, summary["trial_id"], summary["attempt_id"], flush=True)
        time.sleep(orders.step_seconds)
    run.stop()


def _request(unit: Unit, store: Store, lease: Lease, turn: int) -> UnitRequest:
    assert lease.number is not None
    attempts = {trial.id: make_attempt_id(lease.number, turn) for trial in unit.trials}
    return unit_request(store, unit.trials, attempts=attempts, driver_id=lease.driver_id, weights_limit=8_000_000)


def compact(orders: Orders) -> None:
    """Merge whatever can be merged, again and again, until a file named `stop` appears beside the output."""
    stop = Path(orders.output).with_name("stop")
    store = Store.open(orders.location)
    while not stop.exists():
        with contextlib.suppress(OrchError):
            store.compact(min_parts=2)
        time.sleep(0.01)


def expected(orders: Orders) -> None:
    """Write the results of undisturbed trials."""
    write_expected(orders.location)


TASKS = {"sweep": sweep, "compact": compact, "expected": expected}

if __name__ == "__main__":
    run(Orders(**json.loads(sys.argv[1])))
