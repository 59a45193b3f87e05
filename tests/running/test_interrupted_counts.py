"""The counts of a sweep that was interrupted, with a driver that trains nothing."""

import os
import signal
from contextlib import contextmanager

from orch.running import driver, machines
from orch.running.machines import Machines
from orch.running.options import RunOptions
from orch.running.requests import Request
from orch.running.run_sweeps import run_sweeps
from orch.store import Store
from tests.finished_trials import finish


def test_a_trial_that_finishes_while_the_sweep_stops_counts_as_finished(tmp_path, monkeypatch):
    """Its worker writes the result, but the driver no longer listens."""
    store = Store.open(tmp_path / "runs")
    request = Request.read(["main"], "smoke", ["task=modular_addition,modulus=2,model=rnn,lstm"])

    @contextmanager
    def connected(*given):
        yield Machines(2, 0, 2, None)

    def run(state):
        unit = state.queue.popleft()
        state.listener.started(unit)
        os.kill(os.getpid(), signal.SIGINT)
        finish(store, unit.trials)

    monkeypatch.setattr(machines, "connected", connected)
    monkeypatch.setattr(driver, "run", run)
    summary = run_sweeps([request], store, RunOptions(pack=1, quiet=True, ends_process=False), lambda text: None)
    assert summary.stopped == "interrupted"
    assert (summary.finished, summary.left) == (1, 1)
