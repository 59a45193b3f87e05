"""Where a result came from: versions, commit, host, device, memory. No environment variables, no credentials."""

import functools
import importlib.metadata
import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("orch", "torch", "transformers", "ray", "numpy", "safetensors", "pyarrow", "mamba-ssm", "causal-conv1d")

COMMIT_VARIABLE = "ORCH_GIT_COMMIT"
"""The commit of code that was sent here from a checkout; a plus sign after it says that it had been edited."""


@functools.cache
def packages() -> str:
    """The versions of what can change a number, as JSON."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return json.dumps(versions)


@functools.cache
def git_state() -> tuple[str | None, bool | None]:
    """The commit this code stands at and whether it has been edited since; nothing when it is not a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        told = os.environ.get(COMMIT_VARIABLE, "")
        return told.rstrip("+") or None, told.endswith("+") if told else None

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout

    try:
        return git("rev-parse", "HEAD").strip(), bool(git("status", "--porcelain", "--untracked-files=no").strip())
    except (OSError, subprocess.SubprocessError):
        return None, None


def machine(device: str, threads: int) -> dict[str, Any]:
    """What a worker knows of its surroundings."""
    name = device
    torch = sys.modules.get("torch")  # whoever trained on a GPU has imported it
    if device.startswith("cuda") and torch is not None and torch.cuda.is_available():
        name = torch.cuda.get_device_name(device)
    return {"host": socket.gethostname(), "device": name, "threads": threads, "packages": packages()}


def reset_peak_memory() -> None:
    """Start anew: a worker process outlives its trials. Where the system cannot, the peak is the process's."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory_mb() -> float | None:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return None if line is None else int(line.split()[1]) / 1024
