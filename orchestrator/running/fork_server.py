"""The process that forks a clean process for each unit with user code: `python -m orch.running.fork_server`.

It imports torch and computes nothing, so a fork of it begins like a new process, in milliseconds instead of seconds. On
a CPU the user's code is loaded in a fork that stays, from which its units are forked. Nothing that a unit does reaches
another one, whether orch knows of it or not, because each ends with its process. `orch.running.forked_unit` asks for
forks.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import random
import signal
import sys
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any

import numpy
import torch

from orch.running.failures import TrialError, describe
from orch.running.forked_unit import LOAD
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest
from orch.tasks.sampling import derive_seed
from orch.training.train import use_full_precision
from orch.usercode import UserCode
from orch.usercode.global_state import changes_in_this_process
from orch.usercode.loading import run_all_files

_PR_SET_PDEATHSIG = 1
_FIRST_USED_LATE = ("numba", "pandas", "pyarrow.pandas_compat", "orch.training.checkpoints")
"""Modules that take long to import, and that each fork would import otherwise: kernels and Parquet files need them."""


def main() -> None:
    torch.set_num_threads(1)
    use_full_precision()
    for name in _FIRST_USED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    changes_in_this_process()
    end_with_parent(int(sys.argv[2]))
    serve(Connection(int(sys.argv[1])))


def end_with_parent(parent: int) -> None:
    """Let the system end this process with its parent. Elsewhere than on Linux, it ends when it reports next."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def serve(requests: Connection) -> None:
    """Fork a process for each request, which comes with the channel that the fork is to talk through."""
    gc.collect()
    gc.freeze()  # otherwise the collector of each fork would copy nearly all memory
    while True:
        try:
            purpose, given = requests.recv()
            channel = Connection(recv_handle(requests))
        except (EOFError, OSError):
            return
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        parent = os.getpid()
        if os.fork() == 0:
            try:
                end_with_parent(parent)
                requests.close()
                if purpose == LOAD:
                    load(*given)
                    serve(channel)
                else:
                    train(channel, *given)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        channel.close()


def load(code: list[dict[str, Any]]) -> None:
    """Load user code. If that fails, it fails again in each unit, which reports it."""
    for values in code:
        with contextlib.suppress(Exception, SystemExit):
            run_all_files(UserCode.from_dict(values))


class ChannelLog:
    """Passes the events of a unit on to the log of the worker."""

    def __init__(self, channel: Connection):
        self._channel = channel

    def event(self, what: str, **fields: Any) -> None:
        self._channel.send(("event", what, fields))

    def flush(self, now: bool = False) -> None:
        pass


def train(channel: Connection, request: UnitRequest, num_in_turn: int) -> None:
    """Train a unit, one call after the other as the channel asks for them."""
    seed = derive_seed("process", *request["attempts"])
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    run: UnitRun | None = None
    while True:
        try:
            if run is None:
                result: Any = None
                run = UnitRun(request, num_in_turn, ChannelLog(channel))
            else:
                name, arguments = channel.recv()
                found = getattr(run, name)
                result = found(*arguments) if callable(found) else found
            channel.send(("returned", result, run.state, run.take_finished()))
        except EOFError:
            return
        except Exception as error:
            channel.send(("raised", error if isinstance(error, TrialError) else TrialError(describe(error))))
            if run is None:
                return


if __name__ == "__main__":
    main()
