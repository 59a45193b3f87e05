"""Notices that this machine is about to be taken away: spot machines of EC2 and Google Cloud, and pods. Imports no Ray.

A thread asks the metadata server of the machine's cloud, which is known from the machine's firmware, so that nothing
is asked anywhere else. EC2 tells two minutes ahead, Google 30 seconds. `ORCH_RECLAIM_FILE` names a file whose existence
is such a notice: a hook of a pod makes it, or anything else that knows. `ORCH_CLOUD` is aws, gcp or none, and overrides
the firmware; `ORCH_METADATA` is the server's address.
"""

import functools
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

SERVER = "http://169.254.169.254"
POLL_SECONDS = 2.0
ANSWER_SECONDS = 2.0
MOST_SILENT = 5
"""Requests to a metadata server that has never answered, before it is given up: a container may not reach it."""
TOKEN_SECONDS = 6 * 3600
FIRMWARE = Path("/sys/class/dmi/id/sys_vendor")

# A proxy is for the way out, and the server is on this machine.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def _get(path: str, headers: dict[str, str], method: str = "GET") -> str | None:
    """Return what the metadata server has at a path; None if it has nothing there."""
    address = os.environ.get("ORCH_METADATA", SERVER)
    request = urllib.request.Request(f"{address}{path}", headers=headers, method=method)
    try:
        with _open(request, timeout=ANSWER_SECONDS) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        raise


class _Amazon:
    """EC2: `spot/instance-action` is there two minutes before the machine is stopped or terminated."""

    def __init__(self) -> None:
        self._token, self._valid_until = "", 0.0

    def __call__(self) -> str | None:
        if time.monotonic() > self._valid_until:
            asked = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_SECONDS)}
            self._token = _get("/latest/api/token", asked, "PUT") or ""
            self._valid_until = time.monotonic() + TOKEN_SECONDS / 2
        try:
            found = _get("/latest/meta-data/spot/instance-action", {"X-aws-ec2-metadata-token": self._token})
        except urllib.error.HTTPError:
            self._valid_until = 0.0  # the token may have been forgotten
            raise
        if found is None:
            return None
        action = json.loads(found)
        return f"EC2 will {action['action']} this machine at {action['time']}"


def _google() -> str | None:
    """Google Cloud: `preempted` is TRUE half a minute before the machine is stopped."""
    found = _get("/computeMetadata/v1/instance/preempted", {"Metadata-Flavor": "Google"})
    return "Google Cloud is taking this machine back" if (found or "").strip().upper() == "TRUE" else None


CLOUDS: dict[str, Callable[[], Callable[[], str | None]]] = {"aws": _Amazon, "gcp": lambda: _google}
"""What asks the metadata server of a cloud: it returns the notice as a sentence, or None."""


def find_cloud() -> str | None:
    """Return the cloud of this machine, if it is one that gives notice."""
    named = os.environ.get("ORCH_CLOUD")
    if named:
        return named if named in CLOUDS else None
    try:
        vendor = FIRMWARE.read_text()
    except OSError:
        return None
    return "aws" if "Amazon" in vendor else "gcp" if "Google" in vendor else None


class ReclaimWatch:
    """Asks for a notice from time to time, in a thread. On a machine that nobody takes away, there is no thread."""

    def __init__(self) -> None:
        cloud, file = find_cloud(), os.environ.get("ORCH_RECLAIM_FILE")
        self._ask = CLOUDS[cloud]() if cloud else None
        self._file = Path(file) if file else None
        self._notice: str | None = None
        if self._ask or self._file:
            threading.Thread(target=self._watch, daemon=True, name="orch-reclaim").start()

    @property
    def notice(self) -> str | None:
        """The sentence that says why this machine is about to be gone; None while it is not."""
        return self._notice

    def _watch(self) -> None:
        silent, answered = 0, False
        while self._notice is None and (self._file or silent < MOST_SILENT):
            if self._file and self._file.exists():
                self._notice = f"this machine is about to be gone: {self._file} says so"
            elif self._ask and silent < MOST_SILENT:
                try:
                    self._notice = self._ask()
                    silent, answered = 0, True
                except (OSError, ValueError, KeyError):  # a server that has answered once will answer again
                    silent = 0 if answered else silent + 1
            if self._notice is None:
                time.sleep(POLL_SECONDS)


@functools.cache
def _watch_here() -> ReclaimWatch:
    return ReclaimWatch()


def reclaim_notice() -> str | None:
    """Return why this machine is about to be gone, or None while it is not. The first call begins to watch."""
    return _watch_here().notice
