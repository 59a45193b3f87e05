"""Submit sweeps as Ray jobs, which outlive the terminal that submits them."""

import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from orch.cluster import shipment
from orch.cluster.head import HeadUnreachable, find_head
from orch.cluster.launcher import Launcher
from orch.cluster.problem import quoted
from orch.cluster.tunnel import tunnel
from orch.core.errors import OrchError
from orch.usercode import UserCode

SERVER = 8265
"""The port of Ray's dashboard and job server, on the head's loopback."""
OURS = "orch-"
UNDER_WAY = re.compile(r"^[\d,]+ of [\d,]+ done", re.MULTILINE)
"""Matches the first progress line, which a sweep prints after all its checks have passed."""
ABOUT_THE_JOB = re.compile(r"^(?:\S+ \S+\s+INFO job_manager\.py|Running entrypoint for job ).*\n", re.MULTILINE)
"""Matches the lines that Ray itself writes at the start of a job's log."""
END_SECONDS = 30.0
STOPPED = 130
"""The exit code of a sweep that was interrupted."""


class ConnectionLost(OrchError):
    """Raised when the connection to the head breaks while a log is followed; the job itself continues."""


@contextlib.contextmanager
def connect(launcher: Launcher) -> Iterator["Jobs"]:
    """Connect to the job server of a running cluster."""
    if importlib.util.find_spec("aiohttp") is None:
        raise OrchError("a cluster is reached through Ray's job client: install it with pip install 'orch[cluster]'")
    with tunnel(find_head(launcher), SERVER) as port:
        before = logging.root.manager.disable
        logging.disable(logging.INFO)  # Ray's client logs every package and connection
        try:
            yield Jobs(launcher, port)
        finally:
            logging.disable(before)


class Jobs:
    """The sweeps submitted to a cluster, through the job server on its head."""

    def __init__(self, launcher: Launcher, port: int):
        # Ray's client prefers these variables to the address that it is given.
        for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
            os.environ.pop(name, None)
        # A proxy would look for the tunnel on its own loopback.
        direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        os.environ["no_proxy"] = f"{direct},127.0.0.1".lstrip(",")
        from ray.exceptions import AuthenticationError
        from ray.job_submission import JobSubmissionClient

        try:
            self._client = JobSubmissionClient(f"http://127.0.0.1:{port}", headers=_token(launcher))
        except ConnectionError:
            raise HeadUnreachable(
                f"Ray's job server does not answer on the head: start it with ray up {launcher.path}"
            ) from None
        except AuthenticationError:
            raise HeadUnreachable(
                f"the head has a different token: run ray up {launcher.path}, which ships yours"
            ) from None

    def submit(self, entrypoint: str, codes: Sequence[UserCode]) -> str:
        """Run a command line on the head with this copy of the project, and return the job's name."""
        name = f"{OURS}{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        with tempfile.TemporaryDirectory(prefix="orch-job-") as folder:
            shipment.pack(Path(folder), codes)
            environment = {"working_dir": folder, "env_vars": dict(shipment.environment())}
            try:
                self._client.submit_job(entrypoint=entrypoint, submission_id=name, runtime_env=environment)
            except (RuntimeError, OSError) as error:
                raise OrchError(f"the head refused the job ({quoted(error)}): fix that and try again") from None
        return name

    def newest(self) -> str | None:
        """Return the name of the running job, or of the last one if none or several are running."""
        found = [job for job in self._client.list_jobs() if (job.submission_id or "").startswith(OURS)]
        last = max(found, key=lambda job: (not job.status.is_terminal(), job.start_time or 0), default=None)
        return None if last is None else last.submission_id

    def log(self, name: str) -> str:
        """Return what a job has printed so far."""
        return ABOUT_THE_JOB.sub("", self._client.get_job_logs(name))

    def follow(self, name: str, write: Callable[[str], None], until: re.Pattern[str] | None = None) -> int | None:
        """Pass on a job's log from its beginning as it grows. Return the exit code, or None once `until` matches."""
        from aiohttp import ClientError

        try:
            if asyncio.run(self._tail(name, write, until)):
                return None
            return self._exit_code(name)
        except BrokenPipeError:
            raise  # the reader of our output has gone; the connection itself is fine
        except (ClientError, RuntimeError, OSError) as error:
            raise ConnectionLost(f"the connection to the head was lost ({quoted(error)})") from None

    async def _tail(self, name: str, write: Callable[[str], None], until: re.Pattern[str] | None) -> bool:
        async for text in self._client.tail_job_logs(name):
            write(ABOUT_THE_JOB.sub("", text))
            if until is not None and until.search(text):
                return True
        return False

    def _exit_code(self, name: str) -> int:
        """Wait for the job's exit code: the log ends a moment before the job does."""
        patience = time.monotonic() + END_SECONDS
        while not (job := self._client.get_job_info(name)).status.is_terminal():
            if time.monotonic() > patience:
                raise ConnectionError("its log ended, but the job is still running")
            time.sleep(0.2)
        if job.status == "STOPPED":
            return STOPPED
        if job.driver_exit_code is None and job.status != "SUCCEEDED":
            raise OrchError(f"the job {name} did not run ({quoted(job.message)}): fix that and submit it again")
        return job.driver_exit_code or 0


def _token(launcher: Launcher) -> dict[str, str]:
    """Build the header with the token that the launcher file ships to the head."""
    files = [local for remote, local in launcher.file_mounts.items() if remote.endswith(".ray/auth_token")]
    return {"Authorization": f"Bearer {Path(files[0]).expanduser().read_text().strip()}"}
