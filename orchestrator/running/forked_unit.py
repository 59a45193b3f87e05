"""Units with user code: each trains in a process of its own, forked from a clean one. Imports no Ray.

A trial of a built-in model has the same id whoever asks for it, so its numbers must not depend on whose code ran in its
process before. A worker therefore never runs user code itself.
"""

import atexit
import contextlib
import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any

from orch.running.driver_log import worker_log
from orch.running.failures import Failure, TrialError
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest, UnitState
from orch.store import Outcome, Store
from orch.sweeps.result import CurvePoint

LOAD, TRAIN = "load", "train"
"""What a fork is for: to load code and fork units in turn, or to train one unit."""
_MOST_CODES = 4
"""Sets of user code that a worker keeps loaded, each in a process that waits."""


def open_unit(request: UnitRequest, num_in_turn: int = 1) -> "UnitRun | ForkedUnit":
    """Start an attempt at a unit: in this process, or in a fork of a clean one if it has user code."""
    return ForkedUnit(request, num_in_turn) if request["code"] else UnitRun(request, num_in_turn)


class ForkServer:
    """A process that forks others on request, and the channel to ask it."""

    def __init__(self, channel: Connection, process: "subprocess.Popen[bytes] | None" = None):
        self._channel, self._process = channel, process

    @classmethod
    def start(cls) -> "ForkServer":
        """Start a process that imports torch and runs no user code."""
        ours, theirs = Pipe()
        # Sets then have the same order in all processes, on which the numbers of a user's model may depend.
        same = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "0"}
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "orch.running.fork_server", str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | same,
                start_new_session=True,  # Ctrl-C is the driver's to handle
            )
        server = cls(ours, process)
        atexit.register(server.end)
        return server

    def fork(self, purpose: str, *given: Any) -> Connection:
        """Fork a process for this purpose, and return the channel to it."""
        ours, theirs = Pipe()
        with theirs:
            self._channel.send((purpose, given))
            send_handle(self._channel, theirs.fileno(), None)
        return ours

    def end(self) -> None:
        """End the process, and with it all that it has forked."""
        self._channel.close()
        if self._process is not None:
            self._process.wait()


@functools.cache
def clean_server() -> ForkServer:
    """Return the server of this process that has run no user code; it starts at the first call."""
    return ForkServer.start()


@functools.lru_cache(maxsize=_MOST_CODES)
def _server_with(code: str) -> ForkServer:
    """Return a server that has loaded this code, given as JSON."""
    return ForkServer(clean_server().fork(LOAD, json.loads(code)))


class ForkedUnit:
    """An attempt at a unit in another process, with the interface of `UnitRun`."""

    def __init__(self, request: UnitRequest, num_in_turn: int = 1):
        self._log = worker_log(Store.open(request["store"]))
        self._channel: Connection | None = None
        self._state = UnitState(done=False, step=0, changes=[])
        self._finished: list[dict[str, Any]] = []
        with self._explained():
            # Code may use a GPU as soon as it is loaded, and no fork can use one that was used before.
            server = clean_server() if request["device"] != "cpu" else _server_with(json.dumps(request["code"]))
            self._channel = server.fork(TRAIN, request, num_in_turn)
        self._result()

    def run_for(self, seconds: float) -> dict[str, Any]:
        report: dict[str, Any] = self._call("run_for", seconds)
        self._log.flush()
        return report

    def advance(self, until: float = math.inf) -> None:
        self._call("advance", until)  # the clock is the machine's, and so the same in all its processes

    def take_finished(self) -> list[dict[str, Any]]:
        finished, self._finished = self._finished, []
        return finished

    @property
    def curves(self) -> Mapping[str, Sequence[CurvePoint]]:
        found: Mapping[str, Sequence[CurvePoint]] = self._call("curves")
        return found

    @property
    def done(self) -> bool:
        return self._state.done

    @property
    def step(self) -> int:
        return self._state.step

    @property
    def changes(self) -> list[str]:
        return self._state.changes

    def stop(self, outcome: Outcome = Outcome.INTERRUPTED) -> None:
        """Let the process write checkpoints of unfinished trials and end their attempts, and end it."""
        if self._channel is not None:
            self._call("stop", outcome)
            self._channel.close()
            self._channel = None
        self._log.flush(now=True)

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._explained():
            if self._channel is None:
                raise EOFError
            self._channel.send((name, arguments))
        return self._result()

    def _result(self) -> Any:
        """Wait for what the last call returns, and log the events until then."""
        while True:
            with self._explained():
                if self._channel is None:
                    raise EOFError
                kind, *content = self._channel.recv()
            if kind == "event":
                what, fields = content
                self._log.event(what, **fields)
            elif kind == "raised":
                raise content[0]
            else:
                result, self._state, finished = content
                self._finished += finished
                return result

    @contextlib.contextmanager
    def _explained(self) -> Any:
        """Report the end of the process as the loss of a worker, of which the driver writes the end."""
        try:
            yield
        except (EOFError, OSError) as error:
            self._channel = None
            message = "the process of the user's code is gone, as after a crash or os._exit"
            raise TrialError(Failure(Outcome.LOST, "lost worker", message)) from error
