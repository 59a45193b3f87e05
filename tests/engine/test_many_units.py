"""The driver on real Ray with more units than it should remember."""

import subprocess
import sys

PROGRAM = """
import gc, tempfile
from collections import deque
from dataclasses import replace

from ray.tune.experiment import Trial as TuneTrial

from orch.running import driver
from orch.running.lease import Lease
from orch.running.machines import connected
from orch.running.options import RunOptions
from orch.running.run_state import RunState
from orch.running.units import Turn, Unit
from orch.store import Store
from orch.sweeps.trial import make_trial


class Listener:
    finished_ids, num_alive = [], 0

    def started(self, unit): ...

    def finished(self, unit, summary):
        self.finished_ids.append(summary["trial_id"])
        if len(self.finished_ids) == NUM_UNITS - 10:
            self.num_alive = sum(isinstance(each, TuneTrial) for each in gc.get_objects())

    def failed(self, unit, failure, again):
        raise SystemExit(failure.message)

    def tick(self, running, num_waiting): ...

    def turn(self, unit):
        return Turn.NOW

    def should_stop(self):
        return False

    def arrange(self, queue): ...


base, listener = make_trial("modular_addition", "rnn", width=16), Listener()
units = deque(Unit([replace(base, init_seed=seed)]) for seed in range(NUM_UNITS))
options = RunOptions(training="orch.training.simulated:open_training")
with tempfile.TemporaryDirectory() as folder, connected(2) as machines, Lease(Store.open(folder), "many") as lease:
    store = Store.open(folder)
    driver.run(RunState(units, machines, options, listener, store, lease.driver_id))
    print(len(set(listener.finished_ids)), len(store.done()), listener.num_alive)
"""


def test_the_driver_does_not_remember_units_that_have_ended():
    """Otherwise a unit takes the driver the longer the more there were before it."""
    num_units = 200
    program = PROGRAM.replace("NUM_UNITS", str(num_units))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    finished, done, num_alive = map(int, ended.stdout.split())
    assert (finished, done) == (num_units, num_units)
    assert num_alive < num_units / 2
