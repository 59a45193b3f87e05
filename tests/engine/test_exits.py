"""What a sweep on this machine shows to others while it runs, and what it leaves behind when a signal ends it."""

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.bucket import s3_bucket
from tests.engine.conftest import wait_for
from tests.process_tree import LOOPBACK, command_line, handles, listening_addresses, still_alive, tree

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc, which lists processes")

TWO = ("sweep", "main", "--scale", "smoke", "--where", "task=modular_addition,modulus=2", "--where", "model=rnn,lstm")
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEYq"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary folder of its own, whose path is short enough for Ray's sockets."""
    folder = Path(tempfile.mkdtemp(prefix="x-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


def test_a_sweep_here_is_reached_from_here_only_and_keeps_the_secrets_of_its_store(
    sweeps, temporary, monkeypatch, tmp_path
):
    """It is killed at the end, and leaves neither processes nor files."""
    with s3_bucket(monkeypatch, tmp_path) as bucket:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        sweeps.location = bucket.replace("s3://", f"s3://AKIAIOSFODNN7EXAMPLE:{SECRET}@")
        process = sweeps.start(*TWO, "--cpus", "1", faults=[["slow 3", {}]], TMPDIR=str(temporary))
        wait_for(lambda: sweeps.attempts("start") or process.poll() is not None, seconds=240)
        processes = tree(process.pid)
        assert process.poll() is None, process.communicate()
        assert len(processes) > 6, "Ray's processes were not found"

        addresses = listening_addresses(processes)
        assert len(addresses) > 4, "the sockets of Ray were not found"
        assert set(addresses) <= LOOPBACK

        assert not [each for each in processes if SECRET.encode() in command_line(each)]
        files = [path for path in temporary.rglob("*") if path.is_file()]
        assert len(files) > 20, "the files of Ray and Tune were not found"
        assert not [path for path in files if SECRET.encode() in path.read_bytes()]
        assert all(folder.stat().st_mode & 0o077 == 0 for folder in temporary.iterdir())
        token = Path.home() / ".ray" / "auth_token"
        assert not token.exists() or token.stat().st_mode & 0o077 == 0

        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: not still_alive(processes))
        wait_for(lambda: not list(temporary.iterdir()))


def signalled_start(sweeps, temporary: Path, number: int, seconds: float) -> None:
    """Send a sweep a signal so many seconds after it began to handle signals, and check all that it leaves.

    The signal goes to the whole group of processes, as from a terminal, `timeout` or a batch system.
    """
    process = sweeps.start(*TWO, "--cpus", "1", own_group=True, TMPDIR=str(temporary))
    wait_for(lambda: handles(process.pid, signal.SIGTERM))
    processes, until = tree(process.pid), time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        processes |= tree(process.pid)
        time.sleep(0.02)
    ended_before = process.poll() is not None
    processes |= tree(process.pid)
    os.killpg(process.pid, number)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == (0 if ended_before else 128 + number), (seconds, output, errors)
    if not ended_before:
        assert "stopped by" in errors or "stopped: interrupted" in output, (seconds, output, errors)
    for noise in ("Traceback", "*** SIG", "Exception ignored", ".cc:", "Aborted"):
        assert noise not in output + errors, (seconds, output, errors)
    wait_for(lambda: not still_alive(processes), seconds=10)
    assert not list(temporary.iterdir())
    checkpoints = {
        path.rpartition("/")[2].removesuffix(".safetensors") for path in sweeps.store.list_files("checkpoints")
    }
    assert not checkpoints & sweeps.store.done()


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGINT, 0.0), (signal.SIGTERM, 4.0)])
def test_a_signal_while_a_sweep_starts_ends_it_cleanly(sweeps, temporary, number, seconds):
    signalled_start(sweeps, temporary, number, seconds)


@pytest.mark.long
def test_a_signal_at_any_moment_of_a_sweep_ends_it_cleanly(sweeps, temporary):
    moments = random.Random(20261118)
    for turn in range(16):
        signalled_start(sweeps, temporary, (signal.SIGINT, signal.SIGTERM)[turn % 2], moments.uniform(0.0, 16.0))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["gcs_server", "raylet"])
@pytest.mark.parametrize("training", [False, True])
def test_a_sweep_whose_ray_is_killed_says_so_and_leaves_nothing(sweeps, temporary, program, training):
    """Ray that is killed while it starts is started again, if it was not ready yet."""
    process = sweeps.start(*TWO, "--cpus", "1", faults=[["slow 3", {}]], TMPDIR=str(temporary))

    def ready() -> bool:
        running = any(command_line(each).split(b"\0")[0].endswith(program.encode()) for each in tree(process.pid))
        return running and (not training or bool(sweeps.attempts("start")))

    wait_for(ready, seconds=240)
    processes = tree(process.pid)
    (victim,) = [each for each in processes if command_line(each).split(b"\0")[0].endswith(program.encode())]
    os.kill(victim, signal.SIGKILL)
    if not training:
        wait_for(lambda: sweeps.attempts("start") or process.poll() is not None, seconds=240)
        process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode in ((2,) if training else (2, 143)), errors
    if process.returncode == 2:
        assert errors.splitlines()[-1].startswith("error: Ray has ended on this machine")
    for noise in ("Traceback", "*** SIG", ".cc:", "rpc_client"):
        assert noise not in output + errors
    wait_for(lambda: not still_alive(processes), seconds=10)
    assert not list(temporary.iterdir())
    sweeps.run(*TWO, "--cpus", "1", faults=[])
    assert len(sweeps.store.done()) == 2
