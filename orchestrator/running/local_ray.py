"""Ray on this machine alone: it listens on loopback addresses only, and its files are readable by this user only."""

import contextlib
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from orch.core.errors import OrchError
from orch.core.interruption import give_up, leaving_at_once
from orch.core.scratch import scratch_folder
from orch.running import ray_guard
from orch.running.ray_compat import considerate_start, shut_down
from orch.store import scrub

_TRIES = ("r", "s")
"""A folder for each attempt to start Ray, which gives up after 30 seconds, however busy the machine is."""
WATCH_SECONDS = 0.5
MOST_PER_CORE = 8
"""Trials at once for each core of a machine, which simulated GPUs may need. Ray starts a process for each of them at
once: thousands would leave no process for anybody on the machine."""
_folders: list[str] = []


def own_folder() -> str | None:
    """Return the temporary folder of the Ray that this process has started, which the guard removes; None without."""
    return _folders[-1] if _folders else None


@contextlib.contextmanager
def local_ray(num_cpus: int | None, **more: Any) -> Iterator[None]:
    """Start Ray on this machine, and stop it at the end. Its folder goes with it, or with the next run after a kill."""
    most = MOST_PER_CORE * (os.cpu_count() or 1)
    if num_cpus is not None and num_cpus > most:
        raise OrchError(f"--cpus {num_cpus} is far more than this machine has cores: use at most {most}")
    protect_token()
    with scratch_folder("ray", short=True) as folder, _guarded(str(folder)):
        try:
            with _watched("gcs_server"):
                _start(str(folder), num_cpus=num_cpus, **more)
            with _watched("gcs_server", "raylet"):
                yield
        finally:
            shut_down()


@contextlib.contextmanager
def _watched(*programs: str) -> Iterator[None]:
    """Give up at once if one of these programs of Ray ends. Ray would wait for a minute, and then crash in C++."""
    over = threading.Event()

    def watch() -> None:
        seen: set[int] = set()
        while not over.wait(WATCH_SECONDS):
            if not all(ray_guard.runs(each, programs) for each in seen) and not over.is_set():
                give_up("Ray has ended on this machine, which nobody asked it to: run the same command again")
            seen |= ray_guard.children_running(os.getpid(), programs)

    watcher = threading.Thread(target=watch, daemon=True, name="orch-watch-ray")
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextlib.contextmanager
def _guarded(folder: str) -> Iterator[None]:
    """Have the processes of Ray in this folder ended, and the folder removed, when the block or this process has."""
    command = [sys.executable, "-I", "-S", ray_guard.__file__, folder]
    # In a session of its own, Ctrl-C does not reach it.
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    _folders.append(folder)
    try:
        yield
    finally:
        _folders.remove(folder)
        assert guard.stdin is not None
        with contextlib.suppress(OSError):  # somebody has ended it
            guard.stdin.write(ray_guard.GOODBYE)
            guard.stdin.close()
        guard.wait()


def _start(folder: str, **options: Any) -> None:
    os.environ[ray_guard.VARIABLE] = folder  # Ray's processes inherit it, and others of this process do not
    try:
        for name in _TRIES:
            try:
                with leaving_at_once(), considerate_start(only_loopback=True):
                    # Ray makes the folder that it is given accessible to every user; the one around it is not.
                    ray.init(address="local", include_dashboard=False, _temp_dir=f"{folder}/{name}", **options)
                return
            except (OrchError, ValueError):
                raise
            except Exception as error:  # Ray raises plain ones when one of its processes is not ready in time
                with leaving_at_once():
                    shut_down()
                    ray_guard.end_processes(folder, os.getpid())
                if name == _TRIES[-1]:
                    reason = scrub(" ".join(str(error).split())).rstrip(".")
                    raise OrchError(f"Ray could not start on this machine ({reason}): run the command again") from None
    finally:
        del os.environ[ray_guard.VARIABLE]


def protect_token() -> None:
    """Make sure that only this user can read the token that protects Ray: Ray 2.60 lets every user read the file."""
    if {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        return
    path = Path.home() / ".ray" / "auth_token"
    with contextlib.suppress(OSError):  # a home that cannot be written to is Ray's to report
        if not path.exists() and os.environ.get("RAY_AUTH_MODE", "token").lower() == "token":
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_once(path, secrets.token_hex(32))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


def _write_once(path: Path, text: str) -> None:
    """Create a private file with this text, unless another process has created it."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)
