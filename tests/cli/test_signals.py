"""Commands that Ctrl-C or SIGTERM ends: one sentence and the exit code, wherever the command was."""

import signal
import subprocess
import sys
import time

import pytest

from tests.process_tree import handles

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3"
SENTENCES = {signal.SIGINT: "stopped by Ctrl-C\n", signal.SIGTERM: "stopped by SIGTERM\n"}


def ended_by(number: int, seconds: float, *words: str) -> None:
    """Run a command, end it so many seconds after it began to handle signals, and check how it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not handles(process.pid, signal.SIGTERM):
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (128 + number, "", SENTENCES[number])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_libraries_are_imported_ends_a_command(number):
    ended_by(number, 0.0, "report", "main", "--store", "bundled")


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_query_that_would_take_hours(number):
    ended_by(number, 8.0, "query", ENDLESS, "--store", "bundled")


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
def test_a_signal_at_any_moment_ends_a_query(seconds):
    ended_by(signal.SIGINT, seconds, "query", ENDLESS, "--store", "bundled")


def test_a_signal_that_the_shell_ignores_stays_ignored():
    """As for a command in the background of a script, which Ctrl-C of another must not end."""
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); from orch.__main__ import run; "
    program += "import orch.cli, os; orch.cli.main = lambda **more: os.kill(os.getpid(), signal.SIGINT); run()"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_signal_after_the_end_of_a_command_does_not_change_its_exit_code():
    """Python takes a second to take Ray and torch apart, and has given up its handlers by then."""
    program = """
import builtins, os, signal, orch.cli
from orch.__main__ import run

class Late:
    def __del__(self, kill=os.kill, own=os.getpid(), number=signal.SIGTERM):
        kill(own, number)

builtins.late = Late()
orch.cli.main = lambda **more: None
run()
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_only_the_first_reason_for_the_end_of_a_command_is_told():
    """A thread that watches processes sees them end while the command ends them."""
    program = """
import threading, time
from orch.core import interruption

def kill_slowly():
    time.sleep(0.5)

interruption._kill_descendants = kill_slowly
interruption._in_charge = True
threading.Timer(0.1, interruption.give_up, ["Ray has ended"]).start()
interruption.leave(15)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, SENTENCES[signal.SIGTERM])


@pytest.mark.parametrize("held_up_by", ["compact", "delete"])
def test_an_interrupted_sweep_does_not_wait_for_a_store_that_has_stopped_answering(held_up_by):
    program = f"""
import os, signal, sys, threading, time, types
from orch.core.interruption import ending_cleanly
from orch.running import lease, session

session.TIDY_SECONDS = lease.LEAVE_SECONDS = 0.5
store = types.SimpleNamespace(compact=lambda **more: None, delete=lambda path: None)
store.{held_up_by} = lambda *given, **more: time.sleep(1000)
log = types.SimpleNamespace(event=print)
held = lease.Lease.__new__(lease.Lease)
held._store, held._exiting, held._thread = store, threading.Event(), threading.Thread(target=lambda: None)
held._thread.start()
held.driver_id = "driver"
with ending_cleanly():
    try:
        with session.interruptible(lambda: None), session.compacting(store, log):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        held.__exit__()
"""
    found = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (143, SENTENCES[signal.SIGTERM])
